"""Sets of times as sorted lists of (begin, end) that do not touch each other."""

from __future__ import annotations

import bisect
from typing import Iterable

Interval = tuple[float, float]


def union(pieces: Iterable[Interval]) -> list[Interval]:
    """Returns the set of all times in one of the pieces, which may overlap and come in any
    order."""
    found: list[Interval] = []
    for begin, end in sorted(pieces):
        if end <= begin:
            continue
        if found and begin <= found[-1][1]:
            if end > found[-1][1]:
                found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return found


def minus(these: list[Interval], those: list[Interval]) -> list[Interval]:
    """Returns the times of the first set that are not in the second one."""
    left: list[Interval] = []
    index = 0
    for begin, end in these:
        while index < len(those) and those[index][1] <= begin:
            index += 1
        at = index
        while at < len(those) and those[at][0] < end:
            if those[at][0] > begin:
                left.append((begin, those[at][0]))
            begin = max(begin, those[at][1])
            at += 1
        if begin < end:
            left.append((begin, end))
    return left


def within(these: list[Interval], window: Interval) -> list[Interval]:
    """Returns the part of the set that lies in the window."""
    low, high = window
    found: list[Interval] = []
    # The piece before the first one that begins in the window may reach into it.
    for index in range(max(0, bisect.bisect_left(these, (low,)) - 1), len(these)):
        begin, end = these[index]
        if begin >= high:
            break
        if end > low:
            found.append((max(begin, low), min(end, high)))
    return found


def length(these: list[Interval]) -> float:
    """Returns the total length of the set."""
    return sum(end - begin for begin, end in these)
