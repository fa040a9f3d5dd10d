"""FunctionNode by the name of a module that programs import."""

from ray.dag import FunctionNode

__all__ = ["FunctionNode"]
