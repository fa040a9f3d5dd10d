"""Notices the profilers of the training function itself, of which a process can have one at a time.

The function's own goes first: ours does not start while it is prepared or records, and ends when
it starts. For that, three methods of torch's classes are wrapped in the processes of workers. They
are called a few times in a run, but for profile.step(), which then also counts as a step.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import weakref
from typing import Any, Callable, Iterator

from ray.train.profiles.steps import OWN

_active: weakref.WeakSet = weakref.WeakSet()  # Profilers of the function that are not ended.
_ours = threading.local()
_give_way: Callable[[], None] | None = None
_steps: Any = None
_is_installed = False


def install(steps: Any) -> bool:
    """Wraps the classes, if torch is there; returns whether it is. steps: counts profile.step()."""
    global _steps, _is_installed
    _steps = steps
    torch = sys.modules.get("torch")
    low = sys.modules.get("torch.autograd.profiler")
    high = sys.modules.get("torch.profiler")
    if torch is None or low is None or high is None:
        return False
    if not _is_installed:
        _is_installed = True
        _wrap(low.profile, "_prepare_trace", before=_begins)
        _wrap(low.profile, "__exit__", after=_ended)
        _wrap(high.profile, "step", after=_stepped)
    return True


def _wrap(cls: type, name: str, before: Callable = None, after: Callable = None) -> None:
    """Lets calls of a method, if there is such a one, be told unless they are ours."""
    method = getattr(cls, name, None)
    if method is None:
        return

    @functools.wraps(method)
    def wrapped(self, *args, **kwargs):
        if getattr(_ours, "depth", 0):
            return method(self, *args, **kwargs)
        if before is not None:
            before(self)
        try:
            return method(self, *args, **kwargs)
        finally:
            if after is not None:
                after(self)

    setattr(cls, name, wrapped)


def _begins(profiler: Any) -> None:
    if _give_way is not None:
        _give_way()
    _active.add(profiler)


def _ended(profiler: Any) -> None:
    _active.discard(profiler)


def _stepped(profiler: Any) -> None:
    if _steps is not None:
        _steps.made(OWN)


def is_active() -> bool:
    """Whether a profiler of the function is prepared or records."""
    return len(_active) > 0


def when_one_begins(call: Callable[[], None] | None) -> None:
    """Calls it before a profiler of the function starts, in its thread; None ends that."""
    global _give_way
    _give_way = call


@contextlib.contextmanager
def ours() -> Iterator[None]:
    """In this block the calls of this thread are our own."""
    _ours.depth = getattr(_ours, "depth", 0) + 1
    try:
        yield
    finally:
        _ours.depth -= 1
