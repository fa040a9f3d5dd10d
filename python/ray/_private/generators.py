"""The Python parts of remote generators.

The awaiting half of ObjectRefGenerator (binding/object_ref_generator.cc), and the value of a task
with num_returns="dynamic".
"""

from __future__ import annotations

from collections import deque
from typing import Iterator

from ray import _raylet

# Values of num_returns in a template.
DYNAMIC, STREAMING = -1, -2
_MAX_LIMIT = 2**31 - 1


def returns_of(num_returns: int | str | None, is_generator: bool) -> int:
    """The num_returns of a template. If unset, a generator function streams."""
    if num_returns is None:
        return STREAMING if is_generator else 1
    return (
        {"streaming": STREAMING, "dynamic": DYNAMIC}[num_returns]
        if isinstance(num_returns, str)
        else int(num_returns)
    )


def check_generator(num_returns: int | str | None, is_generator: bool):
    if isinstance(num_returns, str) and not is_generator:
        raise ValueError(
            f"num_returns={num_returns!r} can only be used with generator functions (functions "
            "that use 'yield'). The decorated function is not a "
            "generator function."
        )


def limit_of(options: dict, shared: int = 0) -> int:
    """The generator_backpressure of a template.

    0 means no limit, -1 that the actor's own limit (`shared`) applies.
    """
    own = options.get("_generator_backpressure_num_objects") or 0
    return min(own, _MAX_LIMIT) if own > 0 else -1 if shared > 0 else 0


def shared_limit_of(options: dict) -> int:
    """The generator_backpressure of an actor; 0 means no limit."""
    return max(0, min(options.get("_actor_generator_backpressure_num_objects") or 0, _MAX_LIMIT))


class DynamicObjectRefGenerator:
    """The ObjectRefs of everything that a task with num_returns="dynamic" yielded.

    Iterating takes them out; len() counts those that are left.
    """

    def __init__(self, refs):
        self._refs = deque(refs)

    def __iter__(self) -> Iterator[_raylet.ObjectRef]:
        while self._refs:
            yield self._refs.popleft()

    def __len__(self) -> int:
        return len(self._refs)


async def next_item(
    generator: _raylet.ObjectRefGenerator, timeout_s: float | None = None
) -> _raylet.ObjectRef:
    """Returns the ObjectRef of the next item, the nil one when `timeout_s` (seconds) has passed.

    Raises StopAsyncIteration when there are no more items.
    """
    import asyncio

    from ray._private.futures import readiness

    loop = asyncio.get_running_loop()
    deadline = None if timeout_s is None else loop.time() + timeout_s
    while True:
        ready = generator._waitable()
        if not _raylet.is_ready(ready):
            waiting = readiness(ready, loop)
            try:
                await asyncio.wait_for(
                    waiting, None if deadline is None else max(0.0, deadline - loop.time())
                )
            except asyncio.TimeoutError:
                return _raylet.ObjectRef.nil()
        try:
            item = generator._next_sync(0)
        except StopIteration:
            raise StopAsyncIteration from None
        if not item.is_nil():  # A nil one means that another consumer took the item.
            return item
