"""The memory of a rank over time, as few points: what a page can draw."""

from __future__ import annotations

import json
from typing import Any

from ray.train.profiles.traces import Trace

# At most so many points are kept: of each group of moments, the one with most memory.
MOST_POINTS = 400
# The categories of torch, in the order of its files. The last one stands for memory of unknown use.
CATEGORIES = (
    "parameter",
    "optimizer_state",
    "input",
    "temporary",
    "activation",
    "gradient",
    "autograd_detail",
    "unknown",
)


def points(path: str | None, trace: Trace, origin_ns: int) -> dict[str, Any] | None:
    """{"times_us": [...], "categories": {name: [bytes...]}}; None where nothing is known.

    path: a file of torch's export_memory_timeline(), which has categories; without one, the
    allocator's own total of the trace is taken.
    """
    if path is not None:
        with open(path, encoding="utf-8") as file:
            times, sizes = json.load(file)
        rows = [[float(time) - origin_ns / 1000, row] for time, row in zip(times, sizes)]
        # Torch writes a first column of zeros, because its picture stacks the other columns on it.
        width = len(rows[0][1]) if rows else 0
        first = max(0, width - len(CATEGORIES))
        categories = CATEGORIES[:width]
        return _thinned([(time, row[first:]) for time, row in rows], categories)
    rows = []
    for event in trace.events:
        if event.get("name") == "[memory]":
            total = event.get("args", {}).get("Total Allocated")
            if isinstance(total, (int, float)) and total >= 0:
                rows.append((event["ts"] + trace.shift_us, [total]))
    rows.sort(key=lambda row: row[0])
    return _thinned(rows, ("allocated",)) if rows else None


def _thinned(rows: list[tuple[float, list]], categories: tuple[str, ...]) -> dict[str, Any]:
    count = len(rows)
    groups = min(count, MOST_POINTS)
    kept = [
        max(
            range(index * count // groups, (index + 1) * count // groups),
            key=lambda at: sum(rows[at][1]),
        )
        for index in range(groups)
    ]
    return {
        "times_us": [round(rows[at][0], 3) for at in kept],
        "categories": {
            name: [int(rows[at][1][column]) for at in kept]
            for column, name in enumerate(categories)
            if any(rows[at][1][column] for at in kept)
        },
    }
