"""One rank's part of the merged trace: its events with the rank as process, compressed.

Fragments of several ranks are joined by merge.py without being parsed again.
"""

from __future__ import annotations

import gzip
import json
from typing import Any, Iterable

from ray.train.profiles.traces import Event, Trace

# Each rank has so many process numbers in the merged trace: its own, and the ones after it for its
# devices.
_PIDS_OF_A_RANK = 1000
# Numbers of threads that do not exist in the process: what the run does, its uploads, and the rows
# for collectives beside operators.
RUN_THREAD, UPLOAD_THREAD, _FIRST_LANE = 2_000_000_000, 2_000_000_001, 2_000_000_010
# At most so many events of a rank go into the merged trace. If there are more, Python frames are
# left out, then the shortest events; the rank's own trace has all of them.
MOST_EVENTS = 400_000
# This is added once for each rank to the numbers of arrows, so that they differ between ranks.
_ARROWS_OF_A_RANK = 1 << 40
_DROPPED_PROCESSES = ("Spans", "Traces")


def pid_of(rank: int) -> int:
    """Returns the process number of a rank in the merged trace."""
    return (rank + 1) * _PIDS_OF_A_RANK


def named(pid: int, what: str, tid: int = 0, **args: Any) -> dict:
    """Returns an event that says something about a process or thread of the trace."""
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": args}


def lanes(events: Iterable[Event]) -> list[tuple[int, Event]]:
    """Deals events that overlap to as few rows as possible; returns (row, event) pairs."""
    ends: list[float] = []
    dealt = []
    for event in sorted(events, key=lambda one: one.begin):
        for row, end in enumerate(ends):
            if end <= event.begin:
                ends[row] = event.end
                break
        else:
            row = len(ends)
            ends.append(event.end)
        dealt.append((row, event))
    return dealt


class Fragment:
    """Makes the events of one rank."""

    def __init__(self, rank: int, label: str):
        """`label` is what a trace calls the process of the rank, besides its number."""
        self._rank, self._pid = rank, pid_of(rank)
        self._label = label
        self._pids: dict[Any, int] = {}
        self._lost = 0

    def events(self, trace: Trace, beside: list[Event], spans: list[dict]) -> list[dict]:
        """All events, in the times of the merged trace.

        beside: collectives that get rows of their own, since they overlap what their thread does.
        spans: what the run itself did, as run_events() gives them.
        """
        moved = {(event.name, event.begin) for event in beside}
        found = [*self._header(), *spans]
        for row, event in lanes(beside):
            tid = _FIRST_LANE + row
            found.append(named(self._pid, "thread_name", tid, name="collectives"))
            found.append(
                {
                    "ph": "X",
                    "cat": "communication",
                    "name": event.name,
                    "pid": self._pid,
                    "tid": tid,
                    "ts": event.begin,
                    "dur": event.end - event.begin,
                }
            )
        for event in self._bounded(trace.events):
            if event.get("pid") in _DROPPED_PROCESSES:
                continue
            if "ts" in event and event.get("ph") != "M":
                event["ts"] = event["ts"] + trace.shift_us
                if event.get("ph") == "X" and (event.get("name"), event["ts"]) in moved:
                    continue
            found.append(self._own(event))
        return found

    def notes(self) -> list[str]:
        """Returns sentences about what is not in the merged trace."""
        if not self._lost:
            return []
        return [
            f"{self._lost} Python frames or short events of rank {self._rank} are only in its own "
            f"trace; the merged one has at most {MOST_EVENTS} of a rank."
        ]

    def _header(self) -> list[dict]:
        return [
            named(self._pid, "process_name", name=f"rank {self._rank} ({self._label})"),
            named(self._pid, "process_sort_index", sort_index=self._rank),
            named(self._pid, "thread_name", RUN_THREAD, name="ray.train"),
            named(self._pid, "thread_sort_index", RUN_THREAD, sort_index=-1),
        ]

    def _bounded(self, events: list[dict]) -> list[dict]:
        if len(events) <= MOST_EVENTS:
            return events
        kept = [event for event in events if event.get("cat") != "python_function"]
        if len(kept) > MOST_EVENTS:
            kept.sort(key=lambda event: -(event.get("dur") or 0) if event.get("ph") == "X" else 0)
            # The names of processes and threads have no duration and must stay.
            names = [event for event in kept if event.get("ph") == "M"]
            kept = names + [event for event in kept if event.get("ph") == "X"][:MOST_EVENTS]
        self._lost = len(events) - len(kept)
        return kept

    def _own(self, event: dict) -> dict:
        pid = event.get("pid")
        if pid not in self._pids:
            # The first process that executes operators is the rank itself.
            self._pids[pid] = self._pid + len(self._pids)
        event["pid"] = self._pids[pid]
        if "id" in event and event.get("ph") in ("s", "t", "f"):
            event["id"] = self._rank * _ARROWS_OF_A_RANK + int(event["id"])
        if event.get("ph") == "M" and event["pid"] == self._pid:
            if event.get("name") in ("process_name", "process_sort_index", "process_labels"):
                return named(self._pid, "process_sort_index", sort_index=self._rank)
        elif event.get("name") == "process_name":
            return named(event["pid"], "process_name", name=f"rank {self._rank}: device {pid}")
        return event

    def adopt(self, pid: Any) -> None:
        """Says which of the trace's processes is the rank itself."""
        self._pids[pid] = self._pid


def run_events(rank: int, spans: list[list], origin_ns: int) -> list[dict]:
    """The run's own spans as events of the rank.

    spans: [name, begin in ns since the epoch, duration in ns, whether the training thread did it].
    """
    found = []
    for name, begin_ns, duration_ns, is_training in spans:
        tid = RUN_THREAD if is_training else UPLOAD_THREAD
        found.append(
            {
                "ph": "X",
                "cat": "ray.train",
                "name": name,
                "pid": pid_of(rank),
                "tid": tid,
                "ts": (begin_ns - origin_ns) / 1000,
                "dur": duration_ns / 1000,
            }
        )
    if any(not is_training for *_, is_training in spans):
        found.append(named(pid_of(rank), "thread_name", UPLOAD_THREAD, name="ray.train uploads"))
    return found


def write(events: list[dict], path: str) -> None:
    """Writes events so that merge.py can join them: compressed, with commas between them."""
    with gzip.open(path, "wt", compresslevel=3, encoding="utf-8") as file:
        for index, event in enumerate(events):
            file.write((",\n" if index else "") + json.dumps(event, separators=(",", ":")))
