"""Brings the reports of all ranks of one attempt together."""

from __future__ import annotations

from collections import deque

from ray.train.reported import TrainingReport


class ReportBook:
    """Keeps what ranks have reported until the same report of every other rank is there.

    A worker sends its next report only when the one before was taken, so that few wait here: a rank
    runs ahead of the others only by uploads that they still make in the background.
    """

    def __init__(self, size: int):
        self._waiting: list[deque[TrainingReport]] = [deque() for _ in range(size)]

    def add(self, rank: int, report: TrainingReport) -> tuple[TrainingReport, ...] | None:
        """Takes a rank's next report; returns those of all ranks if it was the last one missing."""
        self._waiting[rank].append(report)
        if not all(self._waiting):
            return None
        return tuple(queue.popleft() for queue in self._waiting)
