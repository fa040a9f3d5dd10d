"""Nodes that call tasks, actors and their methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator

from ray.dag.inputs import InputAttributeNode, InputNode
from ray.dag.node import DAGNode

if TYPE_CHECKING:
    from ray.actor import ActorClass, ActorMethod
    from ray.remote_function import RemoteFunction


class FunctionNode(DAGNode):
    """A task; made by fn.bind()."""

    def __init__(self, function: RemoteFunction, args: tuple, kwargs: dict):
        super().__init__(args, kwargs, function._options)
        self._function = function

    def _run(self, resolve, given):
        return self._function.remote(*resolve(self._args), **resolve(self._kwargs))

    def _body(self) -> str:
        return repr(self._function._function)


class ClassNode(DAGNode):
    """An actor that each execute() creates; made by Class.bind().

    Its methods run in the order in which they were bound: running one first runs those bound
    before.
    """

    def __init__(self, actor_class: ActorClass, args: tuple, kwargs: dict):
        super().__init__(args, kwargs, actor_class._options)
        self._actor_class = actor_class
        self._last: ClassMethodNode | None = None
        if any(isinstance(node, (InputNode, InputAttributeNode)) for node in self._all()):
            raise ValueError(
                "InputNode handles user dynamic input the DAG, and cannot be used as args, "
                "kwargs, or other_args_to_resolve in "
                "ClassNode constructor because it is not available at class construction or "
                "binding time."
            )

    def __getattr__(self, name: str) -> "_UnboundMethod":
        if name.startswith("__"):
            raise AttributeError(f"'ClassNode' object has no attribute '{name}'")
        if name not in self.__dict__["_actor_class"]._methods:
            raise AttributeError(
                f"type object '{self._actor_class.__name__}' has no attribute '{name}'"
            )
        return _UnboundMethod(self, name, {})

    def _run(self, resolve, given):
        return self._actor_class.remote(*resolve(self._args), **resolve(self._kwargs))

    def _body(self) -> str:
        return repr(self._actor_class._cls)


class _UnboundMethod:
    """Stands for class_node.method until its bind() is called."""

    def __init__(self, node: ClassNode, name: str, options: dict):
        self._node, self._name, self._options = node, name, options

    def options(self, **options: Any) -> "_UnboundMethod":
        return _UnboundMethod(self._node, self._name, {**self._options, **options})

    def bind(self, *args: Any, **kwargs: Any) -> "ClassMethodNode":
        node = ClassMethodNode(
            self._name, args, kwargs, self._options, parent=self._node, previous=self._node._last
        )
        self._node._last = node
        return node

    def __getattr__(self, name: str):
        if name == "remote":
            raise AttributeError(
                ".remote() cannot be used on ClassMethodNodes. Use .bind() instead to express an "
                "symbolic actor call."
            )
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


class ClassMethodNode(DAGNode):
    """A call of an actor's method; made by handle.method.bind() or class_node.method.bind().

    `parent` is the ClassNode, or a bound method of a living actor.
    """

    def __init__(
        self,
        method_name: str,
        args: tuple,
        kwargs: dict,
        options: dict,
        parent: ClassNode | ActorMethod,
        previous: "ClassMethodNode | None" = None,
    ):
        super().__init__(args, kwargs, options)
        self._method_name, self._parent, self._previous = method_name, parent, previous

    def get_method_name(self) -> str:
        return self._method_name

    def _before(self) -> Iterator[DAGNode]:
        if isinstance(self._parent, ClassNode):
            yield self._parent
        if self._previous is not None:
            yield self._previous
        yield from super()._before()

    def _run(self, resolve, given):
        method = self._parent
        if isinstance(method, ClassNode):
            method = getattr(resolve(method), self._method_name)
            if self._options:
                method = method.options(**self._options)
        return method.remote(*resolve(self._args), **resolve(self._kwargs))

    def _body(self) -> str:
        return f"{self._method_name}()"


class _ReturnNode(DAGNode):
    """One of the several values that a method returns."""

    def __init__(self, call: ClassMethodNode, index: int):
        super().__init__((call,), {})
        self._index = index

    def _run(self, resolve, given):
        return resolve(self._args)[0][self._index]

    def _body(self) -> str:
        return f"return_idx_{self._index}()"


def bind_method(method: ActorMethod, args: tuple, kwargs: dict):
    """The node of handle.method.bind(); a tuple of nodes when the method returns several values."""
    options = {**method._info.methods[method._name].options, **method._options}
    node = ClassMethodNode(method._name, args, kwargs, options, parent=method)
    returns = options.get("num_returns")
    if isinstance(returns, int) and returns > 1:
        return tuple(_ReturnNode(node, index) for index in range(returns))
    return node
