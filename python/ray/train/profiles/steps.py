"""Counts the steps of a training function, and tells a recorder when one begins.

Kinds of steps, from the finest to the coarsest:

- "batch": prepare_data_loader()'s loader hands out a batch;
- "prof.step": the function calls step() of its own torch.profiler.profile;
- "report": report() returns.

Only what happens in the function's own thread counts, because a profiler sees the thread that has
started it. Step n begins when the count of its kind becomes n.
"""

from __future__ import annotations

import threading
from typing import Any

BATCH, OWN, REPORT = "batch", "prof.step", "report"
# The kinds of steps, from the finest to the coarsest.
KINDS = (BATCH, OWN, REPORT)
MEANING = (
    "a step is a batch of a loader made by prepare_data_loader(), a call of step() of the "
    "function's own torch.profiler, or a report(), in the thread of the training function"
)


class Steps:
    """The counts of one rank. Without a recorder a step costs about a quarter of a microsecond."""

    def __init__(self):
        # The function's thread, once the function runs.
        self.thread = 0
        # An object with at_step(kind), which is called in that thread.
        self.recorder: Any = None
        # An object with step(kind), which is called for each step of the function.
        self.times: Any = None
        self._counts = dict.fromkeys(KINDS, 0)

    def begin(self) -> None:
        """Makes the calling thread the thread of the function."""
        self.thread = threading.get_ident()

    def counts(self) -> dict[str, int]:
        """Returns the number of steps so far, by kind."""
        return dict(self._counts)

    def made(self, kind: str) -> None:
        """Counts a step of this kind that begins, if the calling thread is that of the function."""
        if threading.get_ident() != self.thread:
            return
        self._counts[kind] += 1
        if self.times is not None:
            self.times.step(kind)
        recorder = self.recorder
        if recorder is not None:
            recorder.at_step(kind)


def finest(counts: list[dict[str, int]]) -> str | None:
    """Returns the finest kind of which all ranks have made steps, else the finest of which any has,
    else None."""
    for enough in (all, any):
        for kind in KINDS:
            if enough(one[kind] for one in counts):
                return kind
    return None
