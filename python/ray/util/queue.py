"""ray.util.queue.Queue: a first-in first-out queue that tasks, actors and drivers share.

An actor holds the items.
"""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Iterable
from typing import Any

import ray


class Empty(queue.Empty):
    """The queue has no item to get."""


class Full(queue.Full):
    """The queue has no room for an item."""


def _check_timeout(timeout: float | None) -> None:
    if timeout is not None and timeout < 0:
        raise ValueError("'timeout' must be a non-negative number")


class Queue:
    """Like queue.Queue, for one cluster; it can be passed to tasks and actors.

    maxsize: the most items; 0 or less means no limit. actor_options: options of the actor that
    holds the items, such as {"name": ...}. Its process ends with the last copy of the queue, or
    with shutdown(). Waiting calls that time out raise RayTaskErrors that are also Empty or Full.
    At most max_concurrency calls (1000 unless actor_options say otherwise) wait at the same time.
    """

    def __init__(self, maxsize: int = 0, actor_options: dict[str, Any] | None = None) -> None:
        self.maxsize = maxsize
        self.actor = ray.remote(_QueueActor).options(**(actor_options or {})).remote(maxsize)

    def __len__(self) -> int:
        return self.size()

    def size(self) -> int:
        """The number of items."""
        return ray.get(self.actor.qsize.remote())

    def qsize(self) -> int:
        """The number of items."""
        return self.size()

    def empty(self) -> bool:
        """Whether the queue has no items at this moment."""
        return ray.get(self.actor.empty.remote())

    def full(self) -> bool:
        """Whether the queue has maxsize items at this moment."""
        return ray.get(self.actor.full.remote())

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Adds an item.

        Waits for room and raises Full after `timeout` seconds; without `block` raises Full at
        once. Raises ValueError for a negative timeout.
        """
        if not block:
            if not ray.get(self.actor.put_nowait.remote(item)):
                raise Full
            return
        _check_timeout(timeout)
        ray.get(self.actor.put.remote(item, timeout))

    async def put_async(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Like put(), for coroutines."""
        if not block:
            if not await self.actor.put_nowait.remote(item):
                raise Full
            return
        _check_timeout(timeout)
        await self.actor.put.remote(item, timeout)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Takes the oldest item.

        Waits for one and raises Empty after `timeout` seconds; without `block` raises Empty at
        once. Raises ValueError for a negative timeout.
        """
        if not block:
            return _taken(ray.get(self.actor.get_nowait.remote()))
        _check_timeout(timeout)
        return ray.get(self.actor.get.remote(timeout))

    async def get_async(self, block: bool = True, timeout: float | None = None) -> Any:
        """Like get(), for coroutines."""
        if not block:
            return _taken(await self.actor.get_nowait.remote())
        _check_timeout(timeout)
        return await self.actor.get.remote(timeout)

    def put_nowait(self, item: Any) -> None:
        """The same as put(item, block=False)."""
        self.put(item, block=False)

    def get_nowait(self) -> Any:
        """The same as get(block=False)."""
        return self.get(block=False)

    def put_nowait_batch(self, items: Iterable) -> None:
        """Adds all items in their order; raises Full, adding none, without room for all.

        Raises TypeError when they cannot be iterated.
        """
        if not isinstance(items, Iterable):
            raise TypeError("Argument 'items' must be an Iterable")
        ray.get(self.actor.put_nowait_batch.remote(list(items)))

    def get_nowait_batch(self, num_items: int) -> list[Any]:
        """Takes exactly `num_items` items; raises Empty, taking none, when there are fewer.

        Raises TypeError unless it is an int, ValueError when negative.
        """
        if not isinstance(num_items, int):
            raise TypeError("Argument 'num_items' must be an int")
        if num_items < 0:
            raise ValueError("'num_items' must be nonnegative")
        return ray.get(self.actor.get_nowait_batch.remote(num_items))

    def shutdown(self, force: bool = False, grace_period_s: int = 5) -> None:
        """Ends the queue's process; later calls of this copy raise AttributeError.

        Calls made before are answered, for at most `grace_period_s` seconds; with `force` none is.
        """
        if self.actor is not None:
            if not force:
                ray.wait([self.actor.__ray_terminate__.remote()], timeout=grace_period_s)
            ray.kill(self.actor, no_restart=True)
        self.actor = None


def _taken(items: list) -> Any:
    if not items:
        raise Empty
    return items[0]


class _QueueActor:
    """Holds the items.

    Methods that fail without waiting return the failure, so that the caller's exception has no
    traceback of this actor.
    """

    def __init__(self, maxsize: int):
        self.maxsize = maxsize
        self.queue: asyncio.Queue = asyncio.Queue(maxsize)

    def qsize(self) -> int:
        return self.queue.qsize()

    def empty(self) -> bool:
        """Whether the queue has no items at this moment."""
        return self.queue.empty()

    def full(self) -> bool:
        """Whether the queue has maxsize items at this moment."""
        return self.queue.full()

    async def put(self, item, timeout=None) -> None:
        try:
            await asyncio.wait_for(self.queue.put(item), timeout)
        except asyncio.TimeoutError:
            raise Full from None

    async def get(self, timeout=None):
        try:
            return await asyncio.wait_for(self.queue.get(), timeout)
        except asyncio.TimeoutError:
            raise Empty from None

    def put_nowait(self, item) -> bool:
        if self.queue.full():
            return False
        self.queue.put_nowait(item)
        return True

    def get_nowait(self) -> list:
        return [] if self.queue.empty() else [self.queue.get_nowait()]

    def put_nowait_batch(self, items: list) -> None:
        if self.maxsize > 0 and len(items) + self.qsize() > self.maxsize:
            raise Full(
                f"Cannot add {len(items)} items to queue of size {self.qsize()} and maxsize "
                f"{self.maxsize}."
            )
        for item in items:
            self.queue.put_nowait(item)

    def get_nowait_batch(self, num_items: int) -> list:
        if num_items > self.qsize():
            raise Empty(f"Cannot get {num_items} items from queue of size {self.qsize()}.")
        return [self.queue.get_nowait() for _ in range(num_items)]
