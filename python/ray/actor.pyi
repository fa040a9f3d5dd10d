"""Signatures of actor classes, handles and methods.

A handle's methods return ObjectRef[Any], since their names are only known when the program runs.
Methods decorated with @ray.method keep their signatures where the handle is annotated as
ActorProxy[TheClass].
"""

from __future__ import annotations

from typing import Any, Callable, Generic, NoReturn, Type, TypeVar, Union, overload

from typing_extensions import Concatenate, ParamSpec

from ray._private.ids import ActorID
from ray._raylet import ObjectRef

_P = ParamSpec("_P")
_T = TypeVar("_T")
_R = TypeVar("_R")
_F = TypeVar("_F", bound=Callable[..., Any], covariant=True)
_A0 = TypeVar("_A0")
_A1 = TypeVar("_A1")
_A2 = TypeVar("_A2")
_A3 = TypeVar("_A3")
_A4 = TypeVar("_A4")
_A5 = TypeVar("_A5")

class ActorClassInheritanceException(TypeError): ...

class ActorMethod(Generic[_F]):
    """`handle.method`: `.remote(...)` calls it."""
    @overload
    def remote(
        self: ActorMethod[Callable[_P, _R]], *args: _P.args, **kwargs: _P.kwargs
    ) -> ObjectRef[_R]: ...
    @overload
    def remote(
        self: ActorMethod[Callable[[_A0], _R]], a0: _A0 | ObjectRef[_A0], /
    ) -> ObjectRef[_R]: ...
    @overload
    def remote(
        self: ActorMethod[Callable[[_A0, _A1], _R]],
        a0: _A0 | ObjectRef[_A0],
        a1: _A1 | ObjectRef[_A1],
        /,
    ) -> ObjectRef[_R]: ...
    @overload
    def remote(
        self: ActorMethod[Callable[[_A0, _A1, _A2], _R]],
        a0: _A0 | ObjectRef[_A0],
        a1: _A1 | ObjectRef[_A1],
        a2: _A2 | ObjectRef[_A2],
        /,
    ) -> ObjectRef[_R]: ...
    @overload
    def remote(
        self: ActorMethod[Callable[[_A0, _A1, _A2, _A3], _R]],
        a0: _A0 | ObjectRef[_A0],
        a1: _A1 | ObjectRef[_A1],
        a2: _A2 | ObjectRef[_A2],
        a3: _A3 | ObjectRef[_A3],
        /,
    ) -> ObjectRef[_R]: ...
    @overload
    def remote(
        self: ActorMethod[Callable[[_A0, _A1, _A2, _A3, _A4], _R]],
        a0: _A0 | ObjectRef[_A0],
        a1: _A1 | ObjectRef[_A1],
        a2: _A2 | ObjectRef[_A2],
        a3: _A3 | ObjectRef[_A3],
        a4: _A4 | ObjectRef[_A4],
        /,
    ) -> ObjectRef[_R]: ...
    @overload
    def remote(
        self: ActorMethod[Callable[[_A0, _A1, _A2, _A3, _A4, _A5], _R]],
        a0: _A0 | ObjectRef[_A0],
        a1: _A1 | ObjectRef[_A1],
        a2: _A2 | ObjectRef[_A2],
        a3: _A3 | ObjectRef[_A3],
        a4: _A4 | ObjectRef[_A4],
        a5: _A5 | ObjectRef[_A5],
        /,
    ) -> ObjectRef[_R]: ...
    def options(self, **options: Any) -> ActorMethod[Callable[..., Any]]: ...
    def bind(self, *args: Any, **kwargs: Any) -> Any: ...

class ActorHandle(Generic[_T]):
    """A caller's end of an actor. An actor that is not detached ends with its last handle."""
    @property
    def _actor_id(self) -> ActorID: ...
    __ray_ready__: ActorMethod[Callable[[], bool]]
    __ray_call__: ActorMethod[Callable[..., Any]]
    __ray_terminate__: ActorMethod[Callable[[], None]]
    def __getattr__(self, name: str) -> ActorMethod[Callable[..., Any]]: ...
    def __hash__(self) -> int: ...

# Annotates parameters and attributes that hold handles. Calls are checked against those methods of
# the class that @ray.method decorates.
ActorProxy = Union[ActorHandle[_T], Type[_T]]

class ActorClass(Generic[_T]):
    """A class whose `.remote(...)` creates an actor."""

    __name__: str
    def remote(self, *args: Any, **kwargs: Any) -> ActorHandle[_T]: ...
    def options(self, **options: Any) -> ActorClass[_T]: ...
    def bind(self, *args: Any, **kwargs: Any) -> Any: ...

@overload
def method(function: Callable[Concatenate[Any, _P], _R]) -> ActorMethod[Callable[_P, _R]]: ...
@overload
def method(
    *, num_returns: int | str, **options: Any
) -> Callable[[Callable[Concatenate[Any, _P], Any]], ActorMethod[Callable[_P, Any]]]: ...
@overload
def method(
    **options: Any,
) -> Callable[[Callable[Concatenate[Any, _P], _R]], ActorMethod[Callable[_P, _R]]]: ...
def exit_actor() -> NoReturn: ...
