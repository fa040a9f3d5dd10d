"""The history of what a run reports: numbers over time, bounded."""

from __future__ import annotations

import math
import time
from typing import Any

# At most so many moments are kept; when there are more, every second one goes.
_MOST_POINTS = 200
# So many metrics are kept, with names of at most so many characters.
_MOST_METRICS, _MOST_CHARACTERS = 20, 80


def numbers_in(metrics: Any) -> dict[str, float]:
    """Returns the finite numbers in metrics; those in dicts inside get names such as
    "eval/loss"."""
    found: dict[str, float] = {}

    def add(prefix: str, values: dict) -> None:
        for name, value in values.items():
            if len(found) >= _MOST_METRICS:
                return
            name = f"{prefix}{name}"[:_MOST_CHARACTERS]
            if isinstance(value, dict):
                if prefix.count("/") < 3:
                    add(name + "/", value)
                continue
            number = _number(value)
            if number is not None:
                found[name] = number

    if isinstance(metrics, dict):
        add("", metrics)
    return found


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return float(value)
    if not isinstance(value, (int, float)):
        # Only scalars of NumPy are asked for their value; an object of another class is not a
        # number.
        if not type(value).__module__.startswith("numpy") or not hasattr(value, "item"):
            return None
        try:
            value = value.item()
        except Exception:
            return None
        if not isinstance(value, (int, float)):
            return None
    try:
        value = float(value)
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


class Progress:
    """Takes each report, and keeps one moment of it whenever it is asked for the history."""

    def __init__(self):
        self._reports = 0
        self._last: tuple = ()
        self._moment_ms = 0.0
        self._points: list[tuple[int, int, dict[str, float]]] = []

    def add(self, reports: tuple) -> None:
        """Takes a report that all ranks have made. reports: the TrainingReports by rank; None for a
        rank without which the report is complete."""
        self._reports += 1
        self._last = reports
        self._moment_ms = time.time() * 1000

    def to_dict(self) -> dict[str, Any]:
        """The history as plain values, with the moment of the last report.

        time_ms: since the epoch; reports: how many there had been; metrics: rank 0's, None where
        one was missing; ranks: what each rank has waited for so far, in seconds, and its steps
        (times.py, step_times.py).
        """
        if self._last and (not self._points or self._points[-1][1] != self._reports):
            numbers = numbers_in(self._last[0].metrics)
            self._points.append((int(self._moment_ms), self._reports, numbers))
            if len(self._points) > _MOST_POINTS:
                # Every second moment goes; the newest one stays.
                del self._points[-2::-2]
        names: dict[str, None] = {}
        for _, _, numbers in self._points:
            names.update(dict.fromkeys(numbers))
        chosen = list(names)[:_MOST_METRICS]
        return {
            "time_ms": [point[0] for point in self._points],
            "reports": [point[1] for point in self._points],
            "metrics": {name: [point[2].get(name) for point in self._points] for name in chosen},
            "ranks": [
                {"world_rank": rank, **report.times}
                for rank, report in enumerate(self._last)
                if report is not None and report.times
            ],
        }
