"""Call graphs: `fn.bind(...)`, `Class.bind(...)` and `handle.method.bind(...)` describe calls, `node.execute(...)` makes them.

Start with node.py (what every node does), then calls.py (the kinds that call) and inputs.py (what execute() is given).
"""

from ray.dag.calls import ClassMethodNode, ClassNode, FunctionNode
from ray.dag.inputs import DAGInputData, InputAttributeNode, InputNode
from ray.dag.node import DAGNode, MultiOutputNode

__all__ = [
    "ClassMethodNode",
    "ClassNode",
    "DAGInputData",
    "DAGNode",
    "FunctionNode",
    "InputAttributeNode",
    "InputNode",
    "MultiOutputNode",
]


def __getattr__(name):
    from ray._private.absent import raise_missing

    raise_missing("ray.dag", name)
