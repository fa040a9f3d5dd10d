"""Makes values ahead of their use, in a thread."""

from __future__ import annotations

import queue
import threading
from typing import Any, Callable, Iterator

_VALUE, _ERROR, _END = range(3)


def ahead(make: Callable[[], Iterator[Any]], count: int) -> Iterator[Any]:
    """Yields the values of make(), while a thread makes up to `count` further ones.

    What it raises is raised here. When the iterator is closed or dropped, the thread ends after the
    value that it is making, and nobody waits for that.
    """
    if count < 1:
        yield from make()
        return
    ready: queue.SimpleQueue = queue.SimpleQueue()
    # Counts the values that may be made before one is taken.
    room = threading.Semaphore(count)
    is_over = threading.Event()

    def produce():
        try:
            values = make()
            while True:
                room.acquire()
                if is_over.is_set():
                    return
                # The queue itself, as a value, marks the end.
                value = next(values, ready)
                if value is ready:
                    break
                ready.put((_VALUE, value))
        except BaseException as error:
            ready.put((_ERROR, error))
        else:
            ready.put((_END, None))

    threading.Thread(target=produce, name="ray.train prefetch", daemon=True).start()
    try:
        while True:
            kind, value = ready.get()
            if kind == _END:
                return
            if kind == _ERROR:
                raise value
            room.release()
            yield value
    finally:
        is_over.set()
        room.release()
