"""Reads one rank's trace: the JSON of kineto, or the file that legacy.py writes for a torch without
it."""

from __future__ import annotations

import json
import re
from typing import Any, Iterator, NamedTuple

# Names of collective operations, and of the parts of them that run on devices.
_COMMUNICATION = re.compile(
    r"^(c10d::|gloo:|nccl:|mpi:|ucc:|xccl:|record_param_comms)|nccl(dev)?kernel", re.IGNORECASE
)
# Collectives of a transport, from their begin to their end, in a thread of the transport.
_BESIDE = re.compile(r"^(gloo|nccl|mpi|ucc|xccl):(?!:)")
# The name that torch's own DataLoader gives to its wait for a batch.
_LOADING = re.compile(r"^enumerate\(DataLoader\)#")
_STEP = re.compile(r"^ProfilerStep#(\d+)$")
# Older versions of torch give operators these kinds, although they are none.
_NO_OPERATOR = re.compile(
    f"{_LOADING.pattern}|{_STEP.pattern}|{_BESIDE.pattern}"
    "|^DistributedDataParallel\\.|^Optimizer\\."
)
# The kinds of events in a trace: operators on the processor, and work of a device.
_OPERATORS = ("cpu_op", "operator")
_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
# Larger times are microseconds since the epoch, and not since the start of a machine or a trace.
_LATER_THAN_2001_US = 1e15


class Event(NamedTuple):
    """One span of a trace. Times in microseconds of the merged trace."""

    name: str
    begin: float
    end: float
    thread: Any
    is_communication: bool


class Trace:
    """A rank's trace with its times moved to a common origin.

    path: of the file. origin_ns: nanoseconds since the epoch that are 0 in what this gives.

    Raises ValueError for a file that is no trace.
    """

    def __init__(self, path: str, origin_ns: int):
        with open(path, encoding="utf-8", errors="replace") as file:
            content = json.load(file)
        if not isinstance(content, dict) or not isinstance(content.get("traceEvents"), list):
            raise ValueError(f"{path} is no trace: it has no list traceEvents.")
        self.events: list[dict] = content["traceEvents"]
        self.distributed: dict = content.get("distributedInfo") or {}
        # Torch before 2.2 wrote microseconds since the epoch, without a base.
        base_ns = int(content.get("baseTimeNanoseconds") or 0)
        if base_ns and any(
            isinstance(event.get("ts"), (int, float)) and event["ts"] > _LATER_THAN_2001_US
            for event in self.events[:1000]
        ):
            base_ns = 0
        self.shift_us = (base_ns - origin_ns) / 1000.0
        for event in self.events:
            if isinstance(event.get("ts"), str):
                # In some versions it is a text.
                event["ts"] = float(event["ts"])

    def spans(self, *kinds: str) -> Iterator[dict]:
        """Yields the complete events of these kinds."""
        for event in self.events:
            if event.get("ph") == "X" and event.get("cat") in kinds:
                yield event

    def _event(self, event: dict) -> Event:
        begin = event["ts"] + self.shift_us
        name = event.get("name", "")
        thread = (event.get("pid"), event.get("tid"))
        is_communication = _COMMUNICATION.search(name) is not None
        return Event(name, begin, begin + event.get("dur", 0), thread, is_communication)

    def operators(self) -> list[Event]:
        """Returns the operators on the processor, nested as they were called."""
        return [
            self._event(event)
            for event in self.spans(*_OPERATORS)
            if not _NO_OPERATOR.match(event.get("name", ""))
        ]

    def collectives(self) -> list[Event]:
        """Returns the collective operations that go on while the thread that began them does other
        things."""
        found = [self._event(event) for event in self.spans("user_annotation", *_OPERATORS)]
        return [event for event in found if _BESIDE.match(event.name)]

    def device_work(self) -> list[Event]:
        """Returns the work of devices: kernels and copies."""
        return [self._event(event) for event in self.spans(*_DEVICE)]

    def loading(self) -> list[Event]:
        """Returns the waits for torch's own DataLoader."""
        events = self.spans("user_annotation", *_OPERATORS)
        return [self._event(event) for event in events if _LOADING.match(event.get("name", ""))]

    def steps(self, recorded: dict[int, tuple[float, float]]) -> dict[int, tuple[float, float]]:
        """Number of a step -> its begin and end, as the trace has them.

        recorded: the same as the recorder has seen it, for steps without a mark. It also decides
        between ours and a mark of that number that the function's own profiler has made.
        """
        marks: dict[int, list[tuple[float, float]]] = {}
        for event in self.spans("user_annotation", *_OPERATORS):
            match = _STEP.match(event.get("name", ""))
            if match:
                one = self._event(event)
                marks.setdefault(int(match.group(1)), []).append((one.begin, one.end))
        return {
            number: min(
                marks.get(number, [window]), key=lambda mark, at=window: abs(mark[0] - at[0])
            )
            for number, window in sorted(recorded.items())
        }
