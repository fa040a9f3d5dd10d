"""ray.util.ActorPool: work handed to whichever actor of a fixed set is free."""
from __future__ import annotations

from collections import deque

import ray


class ActorPool:
    """`fn(actor, value)` returns a reference; results come in order (map, get_next) or as they finish."""

    def __init__(self, actors):
        self._idle = list(actors)
        self._all = set(self._idle)
        self._waiting = deque()          # (fn, value) without an actor yet
        self._actor_of = {}              # reference -> (index, actor)
        self._ref_of = {}                # index -> reference
        self._next_submit = 0
        self._next_return = 0
        self._unordered_taken = False

    def submit(self, fn, value):
        if not self._idle:
            self._waiting.append((fn, value))
            return
        actor = self._idle.pop()
        ref = fn(actor, value)
        self._actor_of[ref] = (self._next_submit, actor)
        self._ref_of[self._next_submit] = ref
        self._next_submit += 1

    def has_next(self) -> bool:
        return bool(self._actor_of)

    def has_free(self) -> bool:
        return bool(self._idle) and not self._waiting

    def get_next(self, timeout=None, ignore_if_timedout=False):
        """The next result in the order of submission."""
        if not self.has_next():
            raise StopIteration("No more results to get")
        if self._unordered_taken:
            raise ValueError("It is not allowed to call get_next() after get_next_unordered().")
        ref = self._ref_of[self._next_return]
        if timeout is not None and not ray.wait([ref], timeout=timeout)[0]:
            if not ignore_if_timedout:
                raise TimeoutError("Timed out waiting for result")
        del self._ref_of[self._next_return]
        self._next_return += 1
        self._release(ref)
        return ray.get(ref)

    def get_next_unordered(self, timeout=None, ignore_if_timedout=False):
        """Any finished result."""
        if not self.has_next():
            raise StopIteration("No more results to get")
        ready, _ = ray.wait(list(self._actor_of), num_returns=1, timeout=timeout)
        if not ready:
            if not ignore_if_timedout:
                raise TimeoutError("Timed out waiting for result")
            return None
        self._unordered_taken = True
        del self._ref_of[self._actor_of[ready[0]][0]]
        self._release(ready[0])
        self._next_return += 1
        if not self.has_next():
            self._unordered_taken = False
            self._next_return = self._next_submit
        return ray.get(ready[0])

    def _release(self, ref):
        _, actor = self._actor_of.pop(ref)
        self._idle.append(actor)
        if self._waiting:
            self.submit(*self._waiting.popleft())

    def map(self, fn, values):
        """Results of fn over values, in their order; submits at once, yields lazily."""
        self._drop_results()
        for value in values:
            self.submit(fn, value)

        def results():
            while self.has_next():
                yield self.get_next()
        return results()

    def map_unordered(self, fn, values):
        """Results of fn over values, as they finish."""
        self._drop_results()
        for value in values:
            self.submit(fn, value)

        def results():
            while self.has_next():
                yield self.get_next_unordered()
        return results()

    def _drop_results(self):
        while self.has_next():
            self.get_next_unordered(timeout=None)

    def pop_idle(self):
        if self.has_free():
            actor = self._idle.pop()
            self._all.discard(actor)
            return actor
        return None

    def push(self, actor):
        if actor in self._all:
            raise ValueError("Actor already belongs to current ActorPool")
        self._all.add(actor)
        self._idle.append(actor)
        if self._waiting:
            self.submit(*self._waiting.popleft())
