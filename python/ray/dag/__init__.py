"""Call graphs: `fn.bind(...)`, `Class.bind(...)` and `handle.method.bind(...)` describe calls, `node.execute(...)` makes them.

Start with node.py (what every node does), then calls.py (the kinds that call) and inputs.py (what execute() is given).
"""
from ray.dag.calls import ClassMethodNode, ClassNode, FunctionNode
from ray.dag.inputs import DAGInputData, InputAttributeNode, InputNode
from ray.dag.node import DAGNode, MultiOutputNode

__all__ = ["ClassMethodNode", "ClassNode", "DAGInputData", "DAGNode", "FunctionNode", "InputAttributeNode", "InputNode", "MultiOutputNode"]

_ABSENT = ("CompiledDAG", "CollectiveOutputNode", "DAGOperationFuture", "GPUFuture", "DAGContext", "plot")


def __getattr__(name):
    if name in _ABSENT:
        from ray._private.options import not_in_release
        raise not_in_release(f"compiled graphs (ray.dag.{name})")
    raise AttributeError(f"module 'ray.dag' has no attribute '{name}'")
