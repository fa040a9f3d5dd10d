"""Brings the reports of all ranks of one attempt together."""

from __future__ import annotations

from collections import deque
from typing import Iterable

from ray.train.reported import TrainingReport

# One report of the run: the reports of its ranks, by rank; None for a rank without which it is
# complete.
Complete = tuple["TrainingReport | None", ...]


class ReportBook:
    """Keeps what ranks have reported until the same report of every other rank is there.

    A worker sends its next report only when the one before was taken, so that few wait here: a rank
    runs ahead of the others only by uploads that they still make in the background.
    """

    def __init__(self, size: int):
        self._waiting: list[deque[TrainingReport]] = [deque() for _ in range(size)]
        # Maps a rank that need not be waited for to how many reports were completed without its
        # own.
        self._missed: dict[int, int] = {}

    def add(self, rank: int, report: TrainingReport) -> list[Complete]:
        """Takes a rank's next report; returns those of all ranks that are complete by it."""
        if self._missed.get(rank):
            # This report was completed without the rank. Files that the rank has uploaded lie where
            # they belong.
            self._missed[rank] -= 1
            return []
        self._waiting[rank].append(report)
        return self._take()

    def relax(self, ranks: Iterable[int]) -> list[Complete]:
        """Reports need not wait for these ranks from now on; returns those complete by that.

        Rank 0, whose metrics are those of the run, must not be among them.
        """
        for rank in ranks:
            assert rank != 0
            self._missed.setdefault(rank, 0)
        return self._take()

    def _take(self) -> list[Complete]:
        complete = []
        while all(waiting or rank in self._missed for rank, waiting in enumerate(self._waiting)):
            for rank in self._missed:
                self._missed[rank] += not self._waiting[rank]
            complete.append(
                tuple(waiting.popleft() if waiting else None for waiting in self._waiting)
            )
        return complete
