"""MultiOutputNode by the name of a module that programs import."""

from ray.dag import MultiOutputNode

__all__ = ["MultiOutputNode"]
