"""Results of a pool's calls.

The reference of a chunk holds a list of (whether the call succeeded, its result or exception).
"""

from __future__ import annotations

import itertools
import threading
from multiprocessing import TimeoutError
from typing import Any, Callable, Iterator

import ray

_MAX_S = 10**6


class AsyncResult:
    """The result of apply_async, map_async and starmap_async."""

    def __init__(
        self,
        chunk_object_refs: list,
        callback: Callable | None = None,
        error_callback: Callable | None = None,
        on_taken: Callable[[Any], None] = lambda error: None,
        single_result: bool = False,
    ):
        self._refs = list(chunk_object_refs)
        self._single = single_result
        self._on_taken = on_taken
        self._outcome: tuple[bool, Any] | None = None
        self._called: threading.Event | None = None
        if callback or error_callback:
            self._called = threading.Event()
            threading.Thread(
                target=self._call_back,
                args=(callback, error_callback),
                name="ray_pool_callback",
                daemon=True,
            ).start()

    def wait(self, timeout: float | None = None) -> None:
        """Waits for the result and the end of callbacks, for at most `timeout` seconds."""
        left = _MAX_S if timeout is None else max(0.0, timeout)
        if self._called is not None:
            self._called.wait(left)
            return
        refs = self._refs
        if refs:
            ray.wait(refs, num_returns=len(refs), timeout=left)

    def ready(self) -> bool:
        """Whether the result or the failure is there, and callbacks have been called."""
        if self._called is not None:
            return self._called.is_set()
        refs = self._refs
        return not refs or len(ray.wait(refs, num_returns=len(refs), timeout=0)[0]) == len(refs)

    def successful(self) -> bool:
        """Whether nothing failed. Raises ValueError before the result is there."""
        if not self.ready():
            raise ValueError(f"{self!r} not ready")
        return self._result()[0]

    def get(self, timeout: float | None = None) -> Any:
        """Returns the result; raises the exception of the first call that failed.

        Raises multiprocessing.TimeoutError after `timeout` seconds.
        """
        self.wait(timeout)
        if timeout is not None and not self.ready():
            raise TimeoutError
        well, result = self._result()
        if not well:
            raise result
        return result

    def _result(self) -> tuple[bool, Any]:
        """Waits until every chunk is ready; returns (True, result) or (False, exception)."""
        if self._outcome is None:
            values: list = []
            try:
                # All chunks are awaited, even when one fails.
                if self._refs:
                    ray.wait(self._refs, num_returns=len(self._refs), timeout=_MAX_S)
                for well, value in itertools.chain.from_iterable(ray.get(self._refs)):
                    if not well:
                        raise value
                    values.append(value)
                self._outcome = True, values[0] if self._single else values
            except Exception as error:
                self._outcome = False, error
            self._refs = []
            self._on_taken(None if self._outcome[0] else self._outcome[1])
        return self._outcome

    def _call_back(self, callback: Callable | None, error_callback: Callable | None) -> None:
        try:
            well, result = self._result()
            if well and callback:
                callback(result)
            if not well and error_callback:
                error_callback(result)
        finally:
            self._called.set()


class IMapIterator:
    """The results of imap() and imap_unordered().

    `submit` submits a chunk of calls; up to `ahead` chunks are in flight while results are taken.
    on_taken(exception or None) is called when the results of a chunk have arrived.
    """

    def __init__(
        self,
        items: Iterator,
        chunksize: int,
        submit: Callable[[list], ray.ObjectRef],
        ahead: int,
        on_taken: Callable[[Any], None],
    ):
        self._items, self._chunksize, self._submit, self._ahead, self._on_taken = (
            items,
            chunksize,
            submit,
            ahead,
            on_taken,
        )
        # References of chunks, the oldest first.
        self._pending: list = []
        self._results: Iterator = iter(())
        self._read_failure: Exception | None = None
        self._fill()

    def read_all(self) -> None:
        """Submits all remaining items; called when the pool is about to end."""
        self._fill(limit=float("inf"))

    def _fill(self, limit: float | None = None) -> None:
        while self._read_failure is None and len(self._pending) < (limit or self._ahead):
            chunk: list = []
            try:
                for item in itertools.islice(self._items, self._chunksize):
                    chunk.append(((item,), {}))
            # The caller's iterable has failed. The error is raised in the place of the results.
            except Exception as error:
                self._read_failure = error
            if not chunk:
                return
            self._pending.append(self._submit(chunk))

    def _ready(self, timeout: float) -> Any:
        """The reference of a ready chunk; None after `timeout` seconds."""
        raise NotImplementedError

    def __iter__(self) -> "IMapIterator":
        return self

    def __next__(self) -> Any:
        return self.next()

    def next(self, timeout: float | None = None) -> Any:
        """Returns the next result; raises what its call raised.

        Raises multiprocessing.TimeoutError after `timeout` seconds, StopIteration at the end.
        """
        for well, value in self._results:
            if not well:
                raise value
            return value
        if not self._pending:
            failure, self._read_failure = self._read_failure, None
            if failure is not None:
                self._items = iter(())
                raise failure
            raise StopIteration
        ref = self._ready(_MAX_S if timeout is None else max(0.0, timeout))
        if ref is None:
            raise TimeoutError
        self._pending.remove(ref)
        failure: Exception | None = None
        try:
            self._results = iter(ray.get(ref))
        except Exception as error:
            # The process has failed, and not a call in it.
            failure = error
        self._on_taken(failure)
        self._fill()
        if failure is not None:
            raise failure
        return self.next(timeout)


class OrderedIMapIterator(IMapIterator):
    def _ready(self, timeout: float) -> Any:
        return next(iter(ray.wait(self._pending[:1], timeout=timeout)[0]), None)


class UnorderedIMapIterator(IMapIterator):
    def _ready(self, timeout: float) -> Any:
        return next(iter(ray.wait(self._pending, timeout=timeout)[0]), None)
