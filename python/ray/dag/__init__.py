"""Call graphs: bind() describes calls of functions, classes and methods, execute() makes them.

Start with node.py (what every node does), then calls.py (the nodes that call) and inputs.py (the
arguments of execute()).
"""

from ray._private.absent import raise_missing
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
    raise_missing("ray.dag", name)
