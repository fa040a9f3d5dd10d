"""DAGInputData, InputAttributeNode and InputNode by the name of a module that programs import."""

from ray.dag import DAGInputData, InputAttributeNode, InputNode

__all__ = ["DAGInputData", "InputAttributeNode", "InputNode"]
