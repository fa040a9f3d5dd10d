"""The trace of a torch whose profiler has no kineto, such as that of Debian 12.

It knows the operators and their shapes, in microseconds since its start.
"""

from __future__ import annotations

import json
import os
from typing import Any

# The scopes of torch's RecordFunction. FUNCTION and BACKWARD_FUNCTION are operators, USER_SCOPE are
# annotations of programs.
_USER_SCOPE = 7
_ANNOTATIONS = ("ProfilerStep#", "enumerate(DataLoader)#", "Optimizer.", "DistributedDataParallel.")


def write(events: Any, marks: dict[str, tuple[int, int]], path: str) -> None:
    """Writes function events as a trace in kineto's form.

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
                "name": _name(event),
                "pid": pid,
                "tid": event.thread,
                "ts": event.time_range.start,
                "dur": event.time_range.end - event.time_range.start,
                "args": _details(event),
            }
            for event in events
        ],
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file)


def _base_ns(events: Any, marks: dict[str, tuple[int, int]]) -> int:
    """Returns when the clock of the events was 0, by the mark whose moments are closest: a thread
    may lose its processor for milliseconds while it makes a mark."""
    starts = {_name(one): one.time_range.start for one in events if _name(one) in marks}
    if not starts:
        return min(marks.values())[0] if marks else 0
    name = min(starts, key=lambda name: marks[name][1] - marks[name][0])
    before_ns, after_ns = marks[name]
    return (before_ns + after_ns) // 2 - int(starts[name] * 1000)


def _name(event: Any) -> str:
    # In `name`, numbers at the end are replaced by a star.
    return getattr(event, "trace_name", None) or event.name


def _is_annotation(event: Any) -> bool:
    return getattr(event, "scope", 0) == _USER_SCOPE or _name(event).startswith(_ANNOTATIONS)


def _details(event: Any) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if getattr(event, "input_shapes", None):
        details["Input Dims"] = event.input_shapes
    if getattr(event, "stack", None):
        details["Call stack"] = ";".join(event.stack)
    return details
