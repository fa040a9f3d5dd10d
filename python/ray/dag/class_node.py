"""ClassMethodNode and ClassNode by the name of a module that programs import."""

from ray.dag import ClassMethodNode, ClassNode

__all__ = ["ClassMethodNode", "ClassNode"]
