"""Signatures of remote functions.

`.remote()` takes what the function takes, or references to it (by position, up to 6 arguments).
"""

from __future__ import annotations

from typing import Any, Callable, Generic, TypeVar, overload

from typing_extensions import ParamSpec

from ray._raylet import ObjectRef, ObjectRefGenerator

_P = ParamSpec("_P")
_R = TypeVar("_R")
_F = TypeVar("_F", bound=Callable[..., Any], covariant=True)
_A0 = TypeVar("_A0")
_A1 = TypeVar("_A1")
_A2 = TypeVar("_A2")
_A3 = TypeVar("_A3")
_A4 = TypeVar("_A4")
_A5 = TypeVar("_A5")

class RemoteFunction(Generic[_F]):
    """A function whose `.remote(...)` runs it as a task."""

    __name__: str
    __qualname__: str
    @property
    def _function(self) -> _F: ...
    @overload
    def remote(
        self: RemoteFunction[Callable[_P, _R]], *args: _P.args, **kwargs: _P.kwargs
    ) -> ObjectRef[_R]: ...
    @overload
    def remote(
        self: RemoteFunction[Callable[[_A0], _R]], a0: _A0 | ObjectRef[_A0], /
    ) -> ObjectRef[_R]: ...
    @overload
    def remote(
        self: RemoteFunction[Callable[[_A0, _A1], _R]],
        a0: _A0 | ObjectRef[_A0],
        a1: _A1 | ObjectRef[_A1],
        /,
    ) -> ObjectRef[_R]: ...
    @overload
    def remote(
        self: RemoteFunction[Callable[[_A0, _A1, _A2], _R]],
        a0: _A0 | ObjectRef[_A0],
        a1: _A1 | ObjectRef[_A1],
        a2: _A2 | ObjectRef[_A2],
        /,
    ) -> ObjectRef[_R]: ...
    @overload
    def remote(
        self: RemoteFunction[Callable[[_A0, _A1, _A2, _A3], _R]],
        a0: _A0 | ObjectRef[_A0],
        a1: _A1 | ObjectRef[_A1],
        a2: _A2 | ObjectRef[_A2],
        a3: _A3 | ObjectRef[_A3],
        /,
    ) -> ObjectRef[_R]: ...
    @overload
    def remote(
        self: RemoteFunction[Callable[[_A0, _A1, _A2, _A3, _A4], _R]],
        a0: _A0 | ObjectRef[_A0],
        a1: _A1 | ObjectRef[_A1],
        a2: _A2 | ObjectRef[_A2],
        a3: _A3 | ObjectRef[_A3],
        a4: _A4 | ObjectRef[_A4],
        /,
    ) -> ObjectRef[_R]: ...
    @overload
    def remote(
        self: RemoteFunction[Callable[[_A0, _A1, _A2, _A3, _A4, _A5], _R]],
        a0: _A0 | ObjectRef[_A0],
        a1: _A1 | ObjectRef[_A1],
        a2: _A2 | ObjectRef[_A2],
        a3: _A3 | ObjectRef[_A3],
        a4: _A4 | ObjectRef[_A4],
        a5: _A5 | ObjectRef[_A5],
        /,
    ) -> ObjectRef[_R]: ...
    @overload
    def options(self, *, num_returns: int | str, **options: Any) -> RemoteFunctionOfMany: ...
    @overload
    def options(self, **options: Any) -> RemoteFunction[_F]: ...
    def bind(self, *args: Any, **kwargs: Any) -> Any: ...

class RemoteGenerator(Generic[_P, _R]):
    """A generator function: `.remote(...)` streams its items."""
    def remote(self, *args: _P.args, **kwargs: _P.kwargs) -> ObjectRefGenerator[_R]: ...
    def options(self, **options: Any) -> RemoteFunctionOfMany: ...
    def bind(self, *args: Any, **kwargs: Any) -> Any: ...

class RemoteFunctionOfMany:
    """A function with num_returns, which decides what `.remote(...)` returns.

    That is nothing, one reference, a list of references, or a generator.
    """
    def remote(self, *args: Any, **kwargs: Any) -> Any: ...
    def options(self, **options: Any) -> RemoteFunctionOfMany: ...
    def bind(self, *args: Any, **kwargs: Any) -> Any: ...
