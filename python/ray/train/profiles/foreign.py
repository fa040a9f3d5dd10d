"""Notices the profilers that the training function makes itself. A process can have one at a time.

The function's profiler has priority: ours does not start while it is prepared or records, and ends
when it starts. For that, three methods of torch's classes are wrapped in the processes of workers.
They are called a few times in a run, except for profile.step(), which then also counts as a step.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import weakref
from typing import Any, Callable, Iterator

from ray.train.profiles.steps import OWN

# Profilers of the function that have not ended.
_active: weakref.WeakSet = weakref.WeakSet()
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
    """Makes calls of a method, if there is such a method, call `before` and `after`, except for
    calls in a block of own_calls()."""
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
    """Returns whether a profiler of the function is prepared or records."""
    return len(_active) > 0


def on_foreign_profiler_start(call: Callable[[], None] | None) -> None:
    """Calls `call` before a profiler that the training function made itself starts, in that
    function's thread. None removes the call."""
    global _give_way
    _give_way = call


@contextlib.contextmanager
def own_calls() -> Iterator[None]:
    """Marks calls to torch.profiler that this thread makes inside the block as Train's own, so that
    they do not count as a profiler of the user."""
    _ours.depth = getattr(_ours, "depth", 0) + 1
    try:
        yield
    finally:
        _ours.depth -= 1
