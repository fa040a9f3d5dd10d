"""Progress bars of tasks and actors, shown by the driver.

Workers print the state of their bars as marked lines, which the driver's log printer passes to
receive(). tqdm draws the bars; without tqdm in the driver there are none.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
import uuid
from typing import Any, Iterable, Iterator

from ray._private.session import WORKER_MODE, global_worker

RAY_TQDM_MAGIC = "__ray_tqdm_magic_token__"


class tqdm:
    """Like tqdm.tqdm, in any process of a job.

    iterable, desc, total (items) and unit are those of tqdm.tqdm. position is ignored: bars are
    stacked in the order of their first updates. flush_interval_s: the shortest time between two
    updates, 0.1 when None.
    """

    DEFAULT_FLUSH_INTERVAL_SECONDS = 0.1

    def __init__(
        self,
        iterable: Iterable | None = None,
        desc: str | None = None,
        total: int | None = None,
        unit: str | None = None,
        position: int | None = None,
        flush_interval_s: float | None = None,
    ):
        if total is None and hasattr(iterable, "__len__"):
            total = len(iterable)  # type: ignore[arg-type]
        self._iterable = iterable
        self._desc = desc or ""
        self._total = total
        self._unit = unit or "it"
        self._position = position or 0
        self._interval_s = (
            self.DEFAULT_FLUSH_INTERVAL_SECONDS if flush_interval_s is None else flush_interval_s
        )
        self._id = uuid.uuid4().hex
        self._done = 0
        self._closed = False
        self._last_flush = 0.0
        self._flush(True)

    @property
    def n(self) -> int:
        """The number of items that are done."""
        return self._done

    @n.setter
    def n(self, value: int) -> None:
        self._done = value

    @property
    def total(self) -> int | None:
        return self._total

    @total.setter
    def total(self, value: int | None) -> None:
        self._total = value

    def set_description(self, desc: str) -> None:
        self._desc = desc
        self._flush()

    def update(self, n: int = 1) -> None:
        """Adds to the number of items that are done."""
        self._done += n
        self._flush()

    def refresh(self) -> None:
        """Sends the state now."""
        self._flush(True)

    def close(self) -> None:
        """Removes the bar. May be called more than once."""
        if not self._closed:
            self._closed = True
            self._flush(True)

    def __iter__(self) -> Iterator[Any]:
        if self._iterable is None:
            raise ValueError("No iterable provided")
        for item in self._iterable:
            self.update(1)
            yield item
        self.close()

    def _flush(self, now: bool = False) -> None:
        clock = time.monotonic()
        if self._closed and not now or not now and clock - self._last_flush < self._interval_s:
            return
        self._last_flush = clock
        state = {
            "uuid": self._id,
            "desc": self._desc,
            "x": self._done,
            "total": self._total,
            "unit": self._unit,
            "pos": self._position,
            "pid": os.getpid(),
            "closed": self._closed,
        }

        if global_worker.mode == WORKER_MODE:
            print(RAY_TQDM_MAGIC + json.dumps(state), flush=True)
        else:
            _bars.show(state)


def safe_print(*args: Any, **kwargs: Any) -> None:
    """A print() that does not break a bar."""
    with _bars.lock:
        _bars.clear()
        print(*args, **kwargs)
        _bars.redraw()


def receive(line: str) -> bool:
    """Shows a bar in the driver if a worker's line is the state of one; returns whether it was."""
    if not line.startswith(RAY_TQDM_MAGIC):
        return False
    try:
        state = json.loads(line[len(RAY_TQDM_MAGIC) :])
        state["uuid"], state["x"], state["closed"]
    except (ValueError, KeyError, TypeError):
        # User code printed this line.
        return False
    _bars.show(state)
    return True


class _Bars:
    """The bars on this process's terminal, made from the states that arrived."""

    def __init__(self):
        self.lock = threading.RLock()
        self._bars: dict[str, Any] = {}
        self._warned = False

    def _tqdm(self):
        try:
            import tqdm as real

            return real.tqdm
        except ImportError:
            if not self._warned:
                self._warned = True

                logging.getLogger("ray").warning(
                    "tqdm is not installed. Progress bars will be disabled."
                )
            return None

    def show(self, state: dict) -> None:
        with self.lock:
            bar = self._bars.get(state["uuid"])
            if bar is None:
                make = None if state["closed"] else self._tqdm()
                if make is None:
                    return
                bar = self._bars[state["uuid"]] = make(
                    desc=state["desc"],
                    total=state["total"],
                    unit=state["unit"],
                    position=len(self._bars),
                    dynamic_ncols=True,
                    leave=False,
                    file=sys.stderr,
                )
            bar.n, bar.total = state["x"], state["total"]
            bar.set_description(state["desc"], refresh=False)
            bar.refresh()
            if state["closed"]:
                bar.close()
                del self._bars[state["uuid"]]

    def clear(self) -> None:
        for bar in self._bars.values():
            bar.clear()

    def redraw(self) -> None:
        for bar in self._bars.values():
            bar.refresh()


_bars = _Bars()
