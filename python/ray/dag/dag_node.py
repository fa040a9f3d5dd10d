"""DAGNode by the name of a module that programs import."""

from ray.dag import DAGNode

__all__ = ["DAGNode"]
