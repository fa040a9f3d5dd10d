"""Measures how long the steps of a rank take, for its metrics and the record of its run."""

from __future__ import annotations

import statistics
import time
from collections import deque
from typing import Any, Callable

from ray.train.profiles.steps import KINDS
from ray.util.metrics import Gauge

# The typical step is the median of so many newest steps, so that a validation between epochs does
# not hide it.
_NEWEST = 31
# The metrics get a value every so many seconds.
_INTERVAL_S = 1.0
_FINENESS = {kind: place for place, kind in enumerate(KINDS)}


class StepTimes:
    """The newest steps of the finest kind that the function makes (profiles/steps.py).

    A step lasts until the next one begins. step() is called by one thread; others may read.
    """

    def __init__(self, tags: dict[str, str] | None, clock: Callable[[], float] = time.perf_counter):
        """`tags` are those of the metrics; None means that there are to be no metrics."""
        self._tags = tags
        self._clock = clock
        self._kind: str | None = None
        self._count = 0
        self._lengths: deque[float] = deque(maxlen=_NEWEST)
        self._last = self._next_export = 0.0
        self._recorders: tuple[Callable[[float], None], ...] = ()

    def step(self, kind: str) -> None:
        """Notes that a step of this kind begins."""
        now = self._clock()
        if kind != self._kind:
            if self._kind is not None and _FINENESS[kind] > _FINENESS[self._kind]:
                return
            self._kind, self._count = kind, 0
            self._lengths.clear()
        else:
            self._lengths.append(now - self._last)
        self._count += 1
        self._last = now
        if self._tags is not None and now >= self._next_export:
            self._next_export = now + _INTERVAL_S
            self._export()

    def to_dict(self) -> dict[str, Any]:
        """Returns {"steps": how many have begun, "step_s": the typical length in seconds}. A value
        that is not known yet is absent."""
        if not self._count:
            return {}
        found: dict[str, Any] = {"steps": self._count}
        lengths = list(self._lengths)
        if lengths:
            found["step_s"] = round(statistics.median(lengths), 6)
        return found

    def _export(self) -> None:
        if not self._recorders:
            tags = self._tags
            self._recorders = tuple(
                Gauge(name, text, tuple(tags)).set_default_tags(tags)._recorder()
                for name, text in (
                    ("train_steps_total", "Steps of this rank in the current attempt."),
                    ("train_step_time_s", "Median of the seconds of this rank's newest steps."),
                )
            )
        found = self.to_dict()
        self._recorders[0](found["steps"])
        if "step_s" in found:
            self._recorders[1](found["step_s"])
