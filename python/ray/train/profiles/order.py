"""Order: what one rank is told to record; it travels from the controller to the workers."""

from __future__ import annotations

from dataclasses import dataclass, replace

# The states of a profile, or of a rank's part of it.
RECORDING, RECORDED, FAILED = "RECORDING", "RECORDED", "FAILED"


@dataclass(frozen=True)
class Order:
    """One profile of one rank.

    id: of the profile. directory: its folder, in the file system of the run's storage. origin_ns:
    nanoseconds since the epoch that are 0 in the merged trace.
    kind: of the steps that count (steps.py); None: the finest that the function turns out to use.
    begin: the number of the first recorded step; None: as soon as possible.
    warmup: how many steps before it go through the profiler, too. timeout_s: how long a rank may
    make no step.
    """

    id: str
    directory: str
    origin_ns: int
    steps: int
    kind: str | None = None
    begin: int | None = None
    warmup: int = 1
    record_shapes: bool = True
    profile_memory: bool = True
    with_stack: bool = True
    timeout_s: float | None = None

    def at(self, kind: str | None, begin: int | None) -> Order:
        """Returns the same order for other steps."""
        return replace(self, kind=kind, begin=begin)
