"""Names for annotations of types."""

from ray import ObjectRef

__all__ = ["ObjectRef"]
