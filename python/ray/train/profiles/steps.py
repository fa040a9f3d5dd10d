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
# From the finest to the coarsest.
KINDS = (BATCH, OWN, REPORT)
MEANING = (
    "a step is a batch of a loader made by prepare_data_loader(), a call of step() of the "
    "function's own torch.profiler, or a report(), in the thread of the training function"
)


class Steps:
    """The counts of one rank. Without a recorder a step costs about a quarter of a microsecond."""

    def __init__(self):
        self.thread = 0  # The function's thread, once it runs.
        self.recorder: Any = None  # Has at_step(kind), which is called in that thread.
        self.times: Any = None  # Has step(kind), which is called for each step of the function.
        self._counts = dict.fromkeys(KINDS, 0)

    def begin(self) -> None:
        """The calling thread is that of the function from now on."""
        self.thread = threading.get_ident()

    def counts(self) -> dict[str, int]:
        """The number of steps so far, by kind."""
        return dict(self._counts)

    def made(self, kind: str) -> None:
        """A step of this kind begins, if the calling thread is that of the function."""
        if threading.get_ident() != self.thread:
            return
        self._counts[kind] += 1
        if self.times is not None:
            self.times.step(kind)
        recorder = self.recorder
        if recorder is not None:
            recorder.at_step(kind)


def finest(counts: list[dict[str, int]]) -> str | None:
    """The finest kind of which all ranks have made steps, else one of which any has; else None."""
    for enough in (all, any):
        for kind in KINDS:
            if enough(one[kind] for one in counts):
                return kind
    return None
