"""The recording and the trace of a torch whose profiler has no kineto, such as that of Debian 12.

They have the operators and their shapes, in microseconds since the recording began.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any, NamedTuple

# The scopes of torch's RecordFunction. FUNCTION and BACKWARD_FUNCTION are operators, USER_SCOPE are
# annotations of programs.
_USER_SCOPE = 7
# The operators that begin and end an annotation.
_OF_PROFILER = "profiler::"
_ANNOTATIONS = ("ProfilerStep#", "enumerate(DataLoader)#", "Optimizer.", "DistributedDataParallel.")


class Event(NamedTuple):
    """An operator, or an annotation of the program."""

    name: str
    scope: int
    thread: int
    # Microseconds since the recording began.
    start_us: float
    end_us: float
    shapes: list


class Profile:
    """Records like torch.profiler.profile, with the profiler that torch had before kineto.

    torch.profiler.profile exists without kineto, too, but may damage the memory of the process:
    when the thread of a collective ends its event after the recording was stopped, it writes into
    memory that the stop has freed (PyTorch 1.13, RecordQueue::getRecords()). DDP does not wait for
    the end of that event, so this happens on a busy machine. The older profiler keeps its events
    until the last writer is gone.
    """

    def __init__(self, number: int, begin: int, record_shapes: bool):
        """Records from step `begin` on; `number` is that of the step at which start() is called."""
        self._number, self._begin = number, begin
        module = importlib.import_module("torch.autograd.profiler_legacy")
        self._recording = module.profile(record_shapes=record_shapes)
        self.events: list[Event] = []

    def start(self) -> None:
        if self._number >= self._begin:
            self._recording.__enter__()

    def step(self) -> None:
        self._number += 1
        if self._number == self._begin:
            self._recording.__enter__()

    def stop(self) -> None:
        """Ends the recording. torch's __exit__() fails if an event began before it."""
        if self._number >= self._begin:
            autograd = sys.modules["torch"].autograd
            self.events = _events(autograd._disable_profiler_legacy())


def _events(records: Any) -> list[Event]:
    """Returns the events whose begin and end are both among the records, which torch gives for each
    thread: something may begin before the recording or end after it."""
    lists = [list(one) for one in records]
    origin = next(one for each in lists for one in each if one.name() == "__start_profile")
    found = []
    for each in lists:
        begun: dict[int, Any] = {}
        for record in each:
            if record.kind() == "push":
                begun[record.handle()] = record
            elif record.kind() == "pop" and record.handle() in begun:
                start = begun.pop(record.handle())
                if start.name().startswith(_OF_PROFILER):
                    continue
                found.append(
                    Event(
                        start.name(),
                        start.scope(),
                        start.thread_id(),
                        origin.cpu_elapsed_us(start),
                        origin.cpu_elapsed_us(record),
                        start.shapes(),
                    )
                )
    return sorted(found, key=lambda event: (event.start_us, -event.end_us))


def write(events: list[Event], marks: dict[str, tuple[int, int]], path: str) -> None:
    """Writes events as a trace in kineto's form.

    marks: the names of events, each with the moments, nanoseconds since the epoch, between which it
    began: the events themselves do not tell what their times begin with.
    """
    pid = os.getpid()
    content = {
        "baseTimeNanoseconds": _base_ns(events, marks),
        "traceEvents": [
            {
                "ph": "X",
                "cat": "user_annotation" if _is_annotation(event) else "cpu_op",
                "name": event.name,
                "pid": pid,
                "tid": event.thread,
                "ts": event.start_us,
                "dur": event.end_us - event.start_us,
                "args": {"Input Dims": event.shapes} if event.shapes else {},
            }
            for event in events
        ],
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file)


def _base_ns(events: list[Event], marks: dict[str, tuple[int, int]]) -> int:
    """Returns when the clock of the events was 0, by the mark whose moments are closest: a thread
    may lose its processor for milliseconds while it makes a mark."""
    starts = {one.name: one.start_us for one in events if one.name in marks}
    if not starts:
        return min(marks.values())[0] if marks else 0
    name = min(starts, key=lambda name: marks[name][1] - marks[name][0])
    before_ns, after_ns = marks[name]
    return (before_ns + after_ns) // 2 - int(starts[name] * 1000)


def _is_annotation(event: Event) -> bool:
    return event.scope == _USER_SCOPE or event.name.startswith(_ANNOTATIONS)
