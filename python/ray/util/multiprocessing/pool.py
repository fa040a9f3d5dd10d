"""multiprocessing.Pool over actors; results.py has the objects that its methods return."""

from __future__ import annotations

import logging
import math
import threading
import weakref
from collections import deque
from typing import Any, Callable, Iterable, Sequence

import ray
from ray import cloudpickle
from ray.exceptions import RayActorError
from ray.util.multiprocessing.results import (
    AsyncResult,
    IMapIterator,
    OrderedIMapIterator,
    UnorderedIMapIterator,
)

__all__ = [
    "AsyncResult",
    "IMapIterator",
    "OrderedIMapIterator",
    "Pool",
    "PoolActor",
    "UnorderedIMapIterator",
]


class PoolActor:
    """One process of a pool."""

    def __init__(self, initializer: Callable | None = None, initargs: Iterable | None = None):
        if initializer is not None:
            initializer(*(initargs or ()))

    def run(self, function: Callable, calls: list[tuple[tuple, dict]]) -> list[tuple[bool, Any]]:
        """Returns (whether it succeeded, the result or exception) of each call."""
        results: list[tuple[bool, Any]] = []
        for args, kwargs in calls:
            try:
                results.append((True, function(*args, **kwargs)))
            except Exception as error:
                results.append((False, _portable(error)))
        return results


def _portable(error: Exception) -> Any:
    """Makes an object that unpickles as the exception, with its traceback's text as cause."""
    from multiprocessing.pool import ExceptionWithTraceback

    try:
        cloudpickle.loads(cloudpickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__} (not picklable): {error}").with_traceback(
            error.__traceback__
        )
    return ExceptionWithTraceback(error, error.__traceback__)


class _Process:
    """The slot of one process in a pool: its actor, replaced after maxtasksperchild chunks."""

    def __init__(self, create: Callable[[], Any], limit: int | None):
        self._create, self._limit = create, limit
        self.actor = create()
        self._count = 0
        # References of submitted chunks, which end in this order.
        self._pending: deque = deque()
        # Actors that were replaced, with the references of their ends.
        self._retired: list = []

    def busy(self) -> int:
        """The number of chunks that were submitted and have not ended."""
        while self._pending and ray.wait([self._pending[0]], timeout=0, fetch_local=False)[0]:
            self._pending.popleft()
        return len(self._pending)

    def submit(self, function: Any, calls: list) -> ray.ObjectRef:
        ref = self.actor.run.remote(function, calls)
        self._pending.append(ref)
        self._count += 1
        if self._count == self._limit:
            self._retired = [old for old in self._retired if not ray.wait([old[1]], timeout=0)[0]]
            self._retired.append((self.actor, self.actor.__ray_terminate__.remote()))
            self.replace()
        return ref

    def replace(self) -> None:
        self.actor, self._count = self._create(), 0

    def finish(self) -> list[ray.ObjectRef]:
        """Lets every actor end after its chunks; returns the references of their ends."""
        self._pending.clear()
        return [end for _, end in self._retired] + [self.actor.__ray_terminate__.remote()]

    def kill(self) -> None:
        self._pending.clear()
        for actor in (self.actor, *(actor for actor, _ in self._retired)):
            ray.kill(actor)


class Pool:
    """A pool of processes with the methods of multiprocessing.Pool, anywhere in the cluster.

    processes: their number, by default all CPUs of the cluster; raises ValueError when it is not
    positive or above the cluster's CPUs. The constructor returns when they run. initializer,
    initargs: called first in each process; when it fails, the constructor does (ActorDiedError).
    maxtasksperchild: chunks after which a process is replaced. context is ignored. ray_address:
    the cluster to join when not connected. ray_remote_args: options of the actors, which take no
    CPU by default.
    """

    def __init__(  # Ray's signature
        self,
        processes: int | None = None,
        initializer: Callable | None = None,
        initargs: Iterable | None = None,
        maxtasksperchild: int | None = None,
        context: Any = None,
        ray_address: str | None = None,
        ray_remote_args: dict[str, Any] | None = None,
    ):
        self._closed = self._terminated = False
        if maxtasksperchild is not None and maxtasksperchild < 0:
            raise ValueError("maxtasksperchild must be a positive int or None")
        if context is not None:
            logging.getLogger("ray").warning(
                "The 'context' argument is not supported using ray. Please refer to the "
                "documentation for how to control "
                "ray initialization."
            )
        count = _process_count(processes, ray_address)
        actor_class = ray.remote(PoolActor).options(**{"num_cpus": 0, **(ray_remote_args or {})})
        initargs = tuple(initargs or ())
        self._processes = [
            _Process(lambda: actor_class.remote(initializer, initargs), maxtasksperchild or None)
            for _ in range(count)
        ]
        ray.get([process.actor.__ray_ready__.remote() for process in self._processes])
        self._next = 0
        # This lock guards the processes, because threads that call back take results, too.
        self._lock = threading.RLock()
        self._iterators: weakref.WeakSet = weakref.WeakSet()

    def apply(self, func: Callable, args: tuple | None = None, kwargs: dict | None = None) -> Any:
        """Returns func(*args, **kwargs), called in one of the processes."""
        return self.apply_async(func, args, kwargs).get()

    def apply_async(
        self,
        func: Callable,
        args: tuple | None = None,
        kwargs: dict | None = None,
        callback: Callable[[Any], None] | None = None,
        error_callback: Callable[[BaseException], None] | None = None,
    ) -> AsyncResult:
        """Like apply(), without waiting.

        A callback is called in a thread of this process, with the result or the exception.
        """
        self._check_running()
        return AsyncResult(
            [self._submit(func, [(args or (), kwargs or {})])],
            callback,
            error_callback,
            self._taken,
            single_result=True,
        )

    def map(self, func: Callable, iterable: Iterable, chunksize: int | None = None) -> list:
        """Returns [func(item) for item in iterable].

        Items are sent in chunks; a chunk is a quarter of a process's share unless chunksize is
        given.
        """
        return self.map_async(func, iterable, chunksize).get()

    def map_async(
        self,
        func: Callable,
        iterable: Iterable,
        chunksize: int | None = None,
        callback: Callable[[list], None] | None = None,
        error_callback: Callable[[BaseException], None] | None = None,
    ) -> AsyncResult:
        """Like map(), without waiting."""
        self._check_running()
        return self._map_async(
            func, [((item,), {}) for item in iterable], chunksize, callback, error_callback
        )

    def starmap(
        self, func: Callable, iterable: Iterable[Iterable], chunksize: int | None = None
    ) -> list:
        """Returns [func(*items) for items in iterable]; otherwise like map()."""
        self._check_running()
        return self._map_async(func, [(items, {}) for items in iterable], chunksize).get()

    def starmap_async(
        self,
        func: Callable,
        iterable: Iterable[Iterable],
        chunksize: Any = None,
        callback: Callable[[list], None] | None = None,
        error_callback: Callable[[BaseException], None] | None = None,
    ) -> AsyncResult:
        """Like starmap(), without waiting."""
        self._check_running()
        # Where Python has a chunksize, Ray's interface has the callback.
        if callable(chunksize):
            chunksize, callback, error_callback = (
                None,
                chunksize,
                callback if error_callback is None else error_callback,
            )
        return self._map_async(
            func, [(items, {}) for items in iterable], chunksize, callback, error_callback
        )

    def imap(
        self, func: Callable, iterable: Iterable, chunksize: int | None = 1
    ) -> OrderedIMapIterator:
        """Returns an iterator over func(item), in order.

        It reads the iterable as results are taken. next(timeout=None) waits for up to `timeout`
        seconds, then raises multiprocessing.TimeoutError. It raises what the call raised, and goes
        on with the next item.
        """
        return self._imap(OrderedIMapIterator, func, iterable, chunksize)

    def imap_unordered(
        self, func: Callable, iterable: Iterable, chunksize: int | None = 1
    ) -> UnorderedIMapIterator:
        """Like imap(), in the order in which chunks end."""
        return self._imap(UnorderedIMapIterator, func, iterable, chunksize)

    def _map_async(
        self,
        func: Callable,
        calls: Sequence,
        chunksize: int | None,
        callback=None,
        error_callback=None,
    ) -> AsyncResult:
        if chunksize is None:
            chunksize = max(1, math.ceil(len(calls) / (4 * len(self._processes))))
        _check_chunksize(chunksize)
        function = _stored_once(func) if len(calls) > chunksize else func
        refs = [
            self._submit(function, calls[at : at + chunksize])
            for at in range(0, len(calls), chunksize)
        ]
        return AsyncResult(refs, callback, error_callback, self._taken)

    def _imap(self, kind: type, func: Callable, iterable: Iterable, chunksize: int | None) -> Any:
        self._check_running()
        if chunksize is None:
            iterable = list(iterable)
            chunksize = max(1, math.ceil(len(iterable) / (4 * len(self._processes))))
        _check_chunksize(chunksize)
        function = _stored_once(func)
        iterator = kind(
            iter(iterable),
            chunksize,
            lambda calls: self._submit(function, calls),
            2 * len(self._processes),
            self._taken,
        )
        self._iterators.add(iterator)
        return iterator

    def _submit(self, function: Any, calls: Sequence) -> ray.ObjectRef:
        """Gives a chunk to the process with the fewest chunks."""
        with self._lock:
            if self._terminated:
                raise ValueError("Pool not running")
            count = len(self._processes)
            order = [self._processes[(self._next + i) % count] for i in range(count)]
            self._next = (self._next + 1) % count
            return min(order, key=_Process.busy).submit(function, list(calls))

    def _taken(self, error: Exception | None) -> None:
        """Drops the references of chunks that have ended, and replaces a process that has died."""
        lost = error.actor_id if isinstance(error, RayActorError) else None
        with self._lock:
            for process in self._processes:
                process.busy()
                if lost and not self._terminated and process.actor._actor_id.hex() == lost:
                    process.replace()

    def close(self) -> None:
        """Refuses further calls; those made are completed."""
        self._closed = True

    def terminate(self) -> None:
        """Ends the processes at once; calls without a result yet fail (ActorDiedError)."""
        self._closed = True
        with self._lock:
            if not self._terminated:
                self._terminated = True
                for process in self._processes:
                    process.kill()

    def join(self) -> None:
        """Waits until the processes have completed their calls and ended.

        Raises ValueError before close() or terminate().
        """
        if not self._closed:
            raise ValueError("Pool is still running")
        if self._terminated:
            return
        for iterator in list(self._iterators):
            iterator.read_all()
        with self._lock:
            self._terminated = True
            ends = [end for process in self._processes for end in process.finish()]
        ray.wait(ends, num_returns=len(ends), fetch_local=False)

    def __enter__(self) -> "Pool":
        self._check_running()
        return self

    def __exit__(self, *exc) -> None:
        self.terminate()

    def _check_running(self) -> None:
        if self._closed:
            raise ValueError("Pool not running")


def _stored_once(function: Callable) -> Any:
    """The function as sent with several chunks: stored once if it is pickled by value."""
    by_name = (
        "<locals>" not in getattr(function, "__qualname__", "<locals>")
        and getattr(function, "__module__", "__main__") != "__main__"
    )
    return function if by_name else ray.put(function)


def _check_chunksize(chunksize: int) -> None:
    if chunksize < 1:
        raise ValueError(f"Chunksize must be 1+, not {chunksize}")


def _process_count(processes: int | None, address: str | None) -> int:
    if processes is not None and processes <= 0:
        raise ValueError("Processes in the pool must be >0.")
    if not ray.is_initialized():
        _connect(processes, address)
    cpus = int(ray.cluster_resources().get("CPU", 0))
    if processes is None:
        processes = cpus
    if processes <= 0:
        raise ValueError("Processes in the pool must be >0.")
    if cpus < processes:
        raise ValueError(
            f"Tried to start a pool with {processes} processes on an existing ray cluster, but "
            f"there are only {cpus} CPUs in the ray cluster."
        )
    return processes


def _connect(processes: int | None, address: str | None) -> None:
    """Joins a cluster, or starts one with a CPU per process."""
    if address is not None or processes is None:
        ray.init(address=address)
        return
    try:
        ray.init(num_cpus=processes)
    except ValueError:
        # A cluster is running already.
        ray.init()
