"""Divides the time of a step into compute, communication, data loading and idle.

Every moment belongs to one of them:

- data loading: the thread that trains waits for a batch;
- compute: otherwise, an operator or a kernel that is no collective runs;
- communication: otherwise, a collective operation is under way, or the rank waits for the others in
  a call of ray.train;
- idle: otherwise. The thread then runs Python between two operators, or waits for something else.

Operators nest. A moment counts for the innermost one, so that an operator that calls a collective
and waits for it is not taken to compute meanwhile.
"""

from __future__ import annotations

import bisect
from typing import Iterable, NamedTuple, Union

from ray.train.profiles.intervals import Interval, length, minus, union, within
from ray.train.profiles.traces import Event

# At most so many operators of a step are named.
MOST_OPERATORS = 10


class Piece(NamedTuple):
    """A time in which one operator was the innermost of its thread."""

    name: str
    begin: float
    end: float
    is_communication: bool
    # Whether the operator calls no other one at all.
    is_leaf: bool


def innermost(events: Iterable[Event]) -> list[Piece]:
    """Cuts nested operators into pieces that do not overlap within a thread."""
    by_thread: dict = {}
    for event in events:
        by_thread.setdefault(event.thread, []).append(event)
    pieces: list[Piece] = []
    for own in by_thread.values():
        own.sort(key=lambda event: (event.begin, -event.end))
        pieces.extend(_pieces_of_thread(own))
    return pieces


def _pieces_of_thread(events: list[Event]) -> list[Piece]:
    pieces: list[Piece] = []
    # Each entry is [event, its end within its parent, where its next piece begins, whether it is a
    # leaf].
    stack: list[list] = []

    def close(until: float) -> None:
        while stack and stack[-1][1] <= until:
            event, end, at, is_leaf = stack.pop()
            if at < end:
                pieces.append(Piece(event.name, at, end, event.is_communication, is_leaf))
            if stack:
                stack[-1][2] = max(stack[-1][2], end)

    for event in events:
        close(event.begin)
        end = event.end
        if stack:
            parent, parent_end, at, _ = stack[-1]
            end = min(end, parent_end)
            if at < event.begin:
                pieces.append(Piece(parent.name, at, event.begin, parent.is_communication, False))
            stack[-1][3] = False
        if end > event.begin:
            stack.append([event, end, event.begin, True])
    close(float("inf"))
    return pieces


Span = Union[Piece, Event]


class Work(NamedTuple):
    """The work of one rank during a profile; times in microseconds."""

    compute: list[Interval]
    communication: list[Interval]
    data: list[Interval]
    # All times in report(), whatever else happened in them.
    report: list[Interval]
    pieces: list[Piece]
    # Collectives that went on beside other operators, each as a whole.
    beside: list[Event]


def work_of(
    operators: list[Event],
    beside: list[Event],
    device: list[Event],
    waits: list[Interval],
    data: list[Interval],
    report: list[Interval],
) -> Work:
    """Sorts events.

    beside: collectives that go on beside operators. waits: for other ranks in calls of ray.train.
    data: waits for batches. report: in report().
    With work of a device, that alone is compute: the processor only hands it out.
    """
    pieces = innermost(operators)
    collectives = [(event.begin, event.end) for event in beside]
    if device:
        pieces = [Piece(one.name, one.begin, one.end, one.is_communication, True) for one in device]
    under_way = union(
        [*collectives, *((p.begin, p.end) for p in pieces if p.is_communication), *waits]
    )
    leaves = union((p.begin, p.end) for p in pieces if p.is_leaf and not p.is_communication)
    around = union((p.begin, p.end) for p in pieces if not p.is_leaf and not p.is_communication)
    data = union(data)
    compute = minus(union([*leaves, *minus(around, under_way)]), data)
    communication = minus(minus(under_way, compute), data)
    return Work(
        compute=compute,
        communication=communication,
        data=data,
        report=union(report),
        pieces=pieces,
        beside=beside,
    )


def shares(work: Work, window: Interval) -> dict[str, float]:
    """Returns the times of one step, whose sum is total_us; report_us is a part of the others."""
    total = window[1] - window[0]
    parts = {
        "compute_us": length(within(work.compute, window)),
        "communication_us": length(within(work.communication, window)),
        "data_us": length(within(work.data, window)),
    }
    parts["idle_us"] = max(0.0, total - sum(parts.values()))
    parts["report_us"] = length(within(work.report, window))
    parts["total_us"] = total
    return {name: round(value, 3) for name, value in parts.items()}


def dealt(spans: Iterable[Span], windows: list[Interval]) -> list[list[Span]]:
    """Returns, for each window, the pieces or events of which it has a part. Windows ascend and do
    not overlap."""
    begins = [begin for begin, _ in windows]
    found: list[list[Span]] = [[] for _ in windows]
    for span in spans:
        at = max(0, bisect.bisect_right(begins, span.begin) - 1)
        while at < len(windows) and begins[at] < span.end:
            if windows[at][1] > span.begin:
                found[at].append(span)
            at += 1
    return found


def costliest(pieces: Iterable[Span], began: Iterable[Event], window: Interval) -> list[dict]:
    """The operators that cost most in a window: their time without that of those they call.

    pieces: among them all that the window has a part of. began: the events among which it is
    counted how often each of them began there.
    """
    totals: dict[str, float] = {}
    for one in pieces:
        begin, end = max(one.begin, window[0]), min(one.end, window[1])
        if begin < end:
            totals[one.name] = totals.get(one.name, 0.0) + end - begin
    ranked = sorted(totals.items(), key=lambda item: -item[1])[:MOST_OPERATORS]
    counts: dict[str, int] = {}
    for event in began:
        if window[0] <= event.begin < window[1]:
            counts[event.name] = counts.get(event.name, 0) + 1
    return [
        {"name": name, "total_us": round(total, 3), "count": counts.get(name, 0)}
        for name, total in ranked
    ]
