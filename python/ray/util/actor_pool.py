"""ray.util.ActorPool: hands work to the free actors of a fixed set."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, TypeVar

import ray

if TYPE_CHECKING:
    from ray.actor import ActorHandle

V = TypeVar("V")


class ActorPool:
    """Hands values to free actors: `fn(actor, value)` makes a call and returns its reference.

    Results come in the order of submission (map, get_next) or as they finish. A pool must be used
    by one thread at a time.
    """

    def __init__(self, actors: Iterable[ActorHandle]):
        self._idle = list(actors)
        self._all = set(self._idle)
        # The (fn, value) pairs that have no actor yet.
        self._waiting: deque = deque()
        # Maps a reference to (index, actor).
        self._actor_of: dict = {}
        # Maps an index to a reference.
        self._ref_of: dict = {}
        self._next_submit = 0
        self._next_return = 0
        self._skipped = False

    def submit(self, fn: Callable[[ActorHandle, V], Any], value: V) -> None:
        """Calls fn(actor, value) on a free actor, or as soon as one is free."""
        if not self._idle:
            self._waiting.append((fn, value))
            return
        actor = self._idle.pop()
        ref = fn(actor, value)
        self._actor_of[ref] = (self._next_submit, actor)
        self._ref_of[self._next_submit] = ref
        self._next_submit += 1

    def has_next(self) -> bool:
        """Whether a call is left whose result has not been taken."""
        return bool(self._actor_of)

    def has_free(self) -> bool:
        """Whether an actor is free and no value waits for one."""
        return bool(self._idle) and not self._waiting

    def get_next(self, timeout: float | None = None, ignore_if_timedout: bool = False) -> Any:
        """Returns the next result in the order of submission; raises what its call raised.

        Raises StopIteration when no result is left, and TimeoutError after `timeout` seconds; with
        ignore_if_timedout that result is then given up, and its actor gets other work. After
        get_next_unordered() has taken a result out of order it raises ValueError until the pool is
        drained.
        """
        if not self.has_next():
            raise StopIteration("No more results to get")
        if self._skipped:
            raise ValueError("It is not allowed to call get_next() after get_next_unordered().")
        ref = self._ref_of[self._next_return]
        if timeout is not None and not ray.wait([ref], timeout=timeout)[0]:
            if not ignore_if_timedout:
                raise TimeoutError("Timed out waiting for result")
            self._release(ref)
            raise TimeoutError(f"Timed out waiting for result. The task {ref} has been ignored.")
        self._release(ref)
        return ray.get(ref)

    def get_next_unordered(
        self, timeout: float | None = None, ignore_if_timedout: bool = False
    ) -> Any:
        """Returns any finished result; raises what its call raised.

        Raises StopIteration when no result is left, and TimeoutError after `timeout` seconds.
        Nothing is given up then, as no particular result is late.
        """
        if not self.has_next():
            raise StopIteration("No more results to get")
        ready, _ = ray.wait(list(self._actor_of), num_returns=1, timeout=timeout)
        if not ready:
            raise TimeoutError("Timed out waiting for result")
        self._skipped = self._skipped or self._actor_of[ready[0]][0] != self._next_return
        self._release(ready[0])
        return ray.get(ready[0])

    def _release(self, ref) -> None:
        """Forgets a call; its actor takes the next waiting value."""
        index, actor = self._actor_of.pop(ref)
        del self._ref_of[index]
        if index == self._next_return:
            self._next_return += 1
        self._make_idle(actor)
        if not self._actor_of:
            self._skipped = False
            self._next_return = self._next_submit

    def _make_idle(self, actor: ActorHandle) -> None:
        self._idle.append(actor)
        if self._waiting:
            self.submit(*self._waiting.popleft())

    def map(self, fn: Callable[[ActorHandle, V], Any], values: Iterable[V]) -> Iterator[Any]:
        """Yields the results of fn over values, in the order of the values.

        All calls are submitted at once. Results of earlier calls that were not taken are given up.
        """
        return self._map(fn, values, self.get_next)

    def map_unordered(
        self, fn: Callable[[ActorHandle, V], Any], values: Iterable[V]
    ) -> Iterator[Any]:
        """Like map(), but yields results as they finish."""
        return self._map(fn, values, self.get_next_unordered)

    def _map(self, fn, values, take) -> Iterator[Any]:
        while self._actor_of:
            self._release(next(iter(self._actor_of)))
        for value in values:
            self.submit(fn, value)

        def results():
            while self.has_next():
                yield take()

        return results()

    def pop_idle(self) -> ActorHandle | None:
        """Takes a free actor out of the pool; None when all are busy."""
        if not self.has_free():
            return None
        actor = self._idle.pop()
        self._all.discard(actor)
        return actor

    def push(self, actor: ActorHandle) -> None:
        """Adds an actor. Raises ValueError when it is in the pool."""
        if actor in self._all:
            raise ValueError("Actor already belongs to current ActorPool")
        self._all.add(actor)
        self._make_idle(actor)
