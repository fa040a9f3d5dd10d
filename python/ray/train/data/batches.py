"""Cuts the blocks of a dataset into batches."""

from __future__ import annotations

import random
from typing import Any, Iterator

from ray.train.data.blocks import Block, RowBlock


def batches_of(blocks: Iterator[Block], batch_size: int | None, drop_last: bool) -> Iterator[Block]:
    """Yields blocks of `batch_size` rows; the last one may be smaller unless it is dropped.

    batch_size None yields the blocks as they come.
    """
    if batch_size is None:
        yield from (block for block in blocks if len(block))
        return
    pieces: list[Block] = []
    missing = batch_size
    for block in blocks:
        begin = 0
        while len(block) - begin >= missing:
            pieces.append(block.slice(begin, begin + missing))
            yield pieces[0].joined(pieces[1:]) if len(pieces) > 1 else pieces[0]
            begin += missing
            pieces, missing = [], batch_size
        if begin < len(block):
            pieces.append(block.slice(begin, len(block)))
            missing -= len(block) - begin
    if pieces and not drop_last:
        yield pieces[0].joined(pieces[1:]) if len(pieces) > 1 else pieces[0]


def shuffled(blocks: Iterator[Block], buffer_size: int, seed: int | None) -> Iterator[Block]:
    """Yields the rows one by one, each chosen among the next `buffer_size` rows."""
    chooser = random.Random(seed)
    waiting: list[Any] = []
    for block in blocks:
        for row in block.rows():
            waiting.append(row)
            if len(waiting) > buffer_size:
                yield RowBlock([_taken(waiting, chooser)])
    while waiting:
        yield RowBlock([_taken(waiting, chooser)])


def _taken(waiting: list[Any], chooser: random.Random) -> Any:
    index = chooser.randrange(len(waiting))
    waiting[index], waiting[-1] = waiting[-1], waiting[index]
    return waiting.pop()
