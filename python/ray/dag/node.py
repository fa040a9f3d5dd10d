"""The base of all nodes of a call graph."""

from __future__ import annotations

import uuid
import warnings
from typing import Any, Callable, Iterator

from ray._private.absent import not_in_release
from ray.dag.scan import Node, nodes_in, replace_nodes
from ray.util.annotations import RayDeprecationWarning


class DAGNode(Node):
    """One value of a graph. Nodes do not change after bind(), so that graphs may share them."""

    _is_input = False  # Whether the node stands for the arguments of execute().

    def __init__(self, args: tuple, kwargs: dict, options: dict | None = None):
        self._args, self._kwargs, self._options = tuple(args), dict(kwargs), dict(options or {})
        self._uuid = uuid.uuid4().hex

    def get_args(self) -> tuple:
        """The positional arguments that the node was bound with."""
        return self._args

    def get_kwargs(self) -> dict[str, Any]:
        """The keyword arguments that the node was bound with."""
        return self._kwargs.copy()

    def get_options(self) -> dict[str, Any]:
        """The options given with .options()."""
        return self._options.copy()

    def get_stable_uuid(self) -> str:
        """An id of 32 hex digits, the same in copies of this node."""
        return self._uuid

    def _before(self) -> Iterator["DAGNode"]:
        """Yields the nodes whose values this one needs."""
        yield from nodes_in(self._args)
        yield from nodes_in(self._kwargs)

    def _all(self) -> list["DAGNode"]:
        """Returns this node and all nodes that it depends on, each once, in an order in which they
        can run."""
        order: list[DAGNode] = []
        seen: set[int] = set()
        stack: list[tuple[DAGNode, bool]] = [(self, False)]
        while stack:
            node, done = stack.pop()
            if done:
                order.append(node)
            elif id(node) not in seen:
                seen.add(id(node))
                stack.append((node, True))
                stack += [(earlier, False) for earlier in reversed(list(node._before()))]
        return order

    def apply_recursive(self, fn: Callable[["DAGNode"], Any]) -> Any:
        """Applies fn to every node once, dependencies first; returns fn's result for this node.

        fn gets copies of the nodes in which the dependencies are replaced by its results for them.
        """
        results: dict[int, Any] = {}
        for node in self._all():
            results[id(node)] = fn(node._with(lambda earlier: results[id(earlier)]))
        return results[id(self)]

    def _with(self, replace: Callable[["DAGNode"], Any]) -> "DAGNode":
        """Returns a copy of this node in which the nodes that it needs are replaced."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy._args, copy._kwargs = (
            replace_nodes(self._args, replace),
            replace_nodes(self._kwargs, replace),
        )
        return copy

    def execute(self, *args: Any, _ray_cache_refs: bool = False, **kwargs: Any) -> Any:
        """Makes the calls of the graph with these arguments, for which InputNode stands.

        Returns this node's reference; a list of them for several returns and for MultiOutputNode;
        a handle for an actor.
        """
        warnings.warn(
            "DAGNode.execute() is deprecated and will be removed in a future release.",
            RayDeprecationWarning,
            stacklevel=2,
        )
        order = self._all()
        assert sum(node._is_input for node in order) <= 1, (
            "Each DAG should only have one unique InputNode."
        )
        values: dict[int, Any] = {}
        for node in order:
            values[id(node)] = node._run(
                lambda value: replace_nodes(value, lambda earlier: values[id(earlier)]),
                (args, kwargs),
            )
        return values[id(self)]

    def _run(self, resolve: Callable[[Any], Any], given: tuple[tuple, dict]) -> Any:
        """Computes this node's value, with the arguments of execute(). `resolve` replaces nodes by
        their values."""
        raise NotImplementedError

    def experimental_compile(  # Ray's signature
        self,
        _submit_timeout: float | None = None,
        _buffer_size_bytes: int | None = None,
        enable_asyncio: bool = False,
        _max_inflight_executions: int | None = None,
        _max_buffered_results: int | None = None,
        _overlap_gpu_communication: bool | None = None,
        _default_communicator: Any = "create",
    ):
        raise not_in_release("compiled graphs (DAGNode.experimental_compile)")

    def with_tensor_transport(self, *args: Any, **kwargs: Any):
        raise not_in_release("compiled graphs (DAGNode.with_tensor_transport)")

    def _body(self) -> str:
        return ""

    def _text(self) -> str:
        def items(lines: list[str]) -> str:
            return "".join("\n        " + line.replace("\n", "\n        ") for line in lines) + (
                "\n    " if lines else ""
            )

        def shown(value: Any) -> str:
            return value._text() if isinstance(value, DAGNode) else f"{value}"

        args = items([f"{shown(value)}, " for value in self._args])
        kwargs = items([f"{key}: {shown(value)}, " for key, value in self._kwargs.items()])
        options = items([f"{key}: {value}" for key, value in self._options.items()])
        return (
            f"({type(self).__name__}, {self._uuid})(\n    body={self._body()}\n    "
            f"args=[{args}]\n    kwargs={{{kwargs}}}\n    options={{{options}}}\n)"
        )

    def __str__(self) -> str:
        return self._text()


class MultiOutputNode(DAGNode):
    """Several nodes as the result of one graph: execute() returns the list of their references."""

    def __init__(self, args: list[DAGNode] | tuple[DAGNode, ...]):
        if not isinstance(args, (list, tuple)):
            raise ValueError(f"Invalid input type for `args`, {type(args)}.")
        super().__init__(tuple(args), {})

    def _run(self, resolve, given):
        return list(resolve(self._args))

    def _body(self) -> str:
        return "__MultiOutputNode__"
