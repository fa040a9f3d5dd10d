"""Names for type annotations."""

from ray import ObjectRef

__all__ = ["ObjectRef"]
