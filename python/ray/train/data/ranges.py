"""Divides the rows of a dataset among ranks."""

from __future__ import annotations


def part_of(count: int, rank: int, ranks: int) -> tuple[int, int]:
    """The rows (from, to before) of a rank.

    All ranks have equally many, because a rank with an additional batch would wait for the others
    in vain; fewer than `ranks` rows at the end are in no part.
    """
    each = count // ranks
    return rank * each, (rank + 1) * each
