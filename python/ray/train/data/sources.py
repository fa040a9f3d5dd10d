"""Sources: the kinds of datasets that a trainer takes, and the part of each rank.

A source is divided in the controller: `shard(rank, ranks)` and `whole()` give parts that pickle,
and `part.blocks()` gives the rows in a worker. Rows of datasets in memory lie in the object store.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Iterator

import ray
from ray.train.config import DataConfig
from ray.train.data.blocks import Block, ColumnBlock, RowBlock
from ray.train.data.iterator import DataIterator
from ray.train.data.ranges import part_of
from ray.train.optional import require

# The number of rows in a block in the object store, and in a block that is made while a dataset is
# read.
_BLOCK_ROWS = 4096
_READ_ROWS = 64


class Held:
    """A value in the object store, or in this object where there is no cluster (local mode)."""

    def __init__(self, value: Any):
        self._is_stored = ray.is_initialized()
        self._value = ray.put(value) if self._is_stored else value

    def get(self) -> Any:
        return ray.get(self._value) if self._is_stored else self._value


@dataclass
class BlockSource:
    """Blocks in the object store, with the number of rows of each."""

    held: list[tuple[Held, int]]

    def shard(self, rank: int, ranks: int) -> BlockRange:
        return self._range(*part_of(self._count(), rank, ranks))

    def whole(self) -> BlockRange:
        return self._range(0, self._count())

    def _count(self) -> int:
        return sum(count for _, count in self.held)

    def _range(self, begin: int, end: int) -> BlockRange:
        pieces, first = [], 0
        for held, count in self.held:
            low, high = max(begin - first, 0), min(end - first, count)
            if low < high:
                pieces.append((held, low, high))
            first += count
        return BlockRange(pieces)


@dataclass
class BlockRange:
    """Rows of stored blocks, which are fetched one after another."""

    # Each piece has a block, its first row and the row after its last one.
    pieces: list[tuple[Held, int, int]]

    def blocks(self) -> Iterator[Block]:
        for held, low, high in self.pieces:
            yield held.get().slice(low, high)


@dataclass
class MapSource:
    """A dataset with __getitem__ and __len__. Every worker gets it and asks for its rows."""

    held: Held
    count: int

    def shard(self, rank: int, ranks: int) -> MapRange:
        return MapRange(self.held, *part_of(self.count, rank, ranks))

    def whole(self) -> MapRange:
        return MapRange(self.held, 0, self.count)


@dataclass
class MapRange:
    """The rows of a MapSource from index `begin` to before `end`."""

    held: Held
    begin: int
    end: int

    def blocks(self) -> Iterator[Block]:
        dataset = self.held.get()
        for first in range(self.begin, self.end, _READ_ROWS):
            after = min(self.end, first + _READ_ROWS)
            yield RowBlock([dataset[index] for index in range(first, after)])


@dataclass
class IterableSource:
    """A dataset that can only be walked through, which every worker does from its beginning."""

    held: Held

    def shard(self, rank: int, ranks: int) -> IterableTurns:
        return IterableTurns(self.held, rank, ranks)

    def whole(self) -> IterableTurns:
        return IterableTurns(self.held, 0, 1)


@dataclass
class IterableTurns:
    """The rows rank, rank + ranks and so on. Rows of an incomplete last round are in no part."""

    held: Held
    rank: int
    ranks: int

    def blocks(self) -> Iterator[Block]:
        round_rows: list[Any] = []
        mine: list[Any] = []
        for row in self.held.get():
            round_rows.append(row)
            if len(round_rows) == self.ranks:
                mine.append(round_rows[self.rank])
                round_rows = []
            if len(mine) == _READ_ROWS:
                yield RowBlock(mine)
                mine = []
        if mine:
            yield RowBlock(mine)


def shards_for(
    datasets: dict[str, Any], data_config: DataConfig | None, world_size: int
) -> list[dict[str, DataIterator]]:
    """The datasets of each rank: its part of those that are divided, all of the others.

    datasets: name -> list of rows, dict of columns, NumPy array, PyTorch dataset, pyarrow.Table,
    pandas.DataFrame, path of Parquet or CSV files, or a function that returns one of these. Raises
    TypeError for another one, ImportError without the package that one needs.
    """
    data_config = data_config or DataConfig()
    shards: list[dict[str, DataIterator]] = [{} for _ in range(world_size)]
    for name, dataset in datasets.items():
        source = source_of(name, dataset)
        for rank in range(world_size):
            is_divided = data_config.splits(name)
            part = source.shard(rank, world_size) if is_divided else source.whole()
            shards[rank][name] = DataIterator(name, part)
    return shards


def unknown_dataset(name: str, known: list[str]) -> KeyError:
    """Returns the error for a dataset that the trainer was not given."""
    have = ", ".join(repr(other) for other in known) or "none at all"
    return KeyError(f"The trainer was given no dataset {name!r}, but {have} (datasets=...).")


def source_of(name: str, dataset: Any) -> Any:
    """Returns the source of any dataset that shards_for() takes."""
    package = type(dataset).__module__.partition(".")[0]
    if isinstance(dataset, (str, os.PathLike)):
        return _tables(f"The dataset {name!r}").file_source(os.fspath(dataset))
    if package == "pyarrow":
        return _stored(_tables(f"The dataset {name!r}").block_of(dataset))
    if package == "pandas":
        return _stored(ColumnBlock({str(key): dataset[key].to_numpy() for key in dataset}))
    if package == "numpy" and hasattr(dataset, "shape"):
        return _stored(ColumnBlock({"data": dataset}))
    if isinstance(dataset, Mapping):
        return _stored(ColumnBlock(_equally_long(name, dataset)))
    if isinstance(dataset, (list, tuple, range)):
        return _stored(RowBlock(list(dataset)))
    if hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__"):
        return MapSource(Held(dataset), len(dataset))
    if hasattr(dataset, "__iter__"):
        return IterableSource(Held(dataset))
    if callable(dataset):
        return source_of(name, dataset())
    raise TypeError(
        f"The dataset {name!r} is a {type(dataset).__module__}.{type(dataset).__qualname__}. It "
        "can be a list of rows, a dict of columns, a NumPy array, a PyTorch dataset, a "
        "pyarrow.Table, a pandas.DataFrame, a path of Parquet or CSV files, or a function that "
        "returns one of these. ray.data is not in this release."
    )


def _tables(feature: str) -> Any:
    require("pyarrow", feature)
    return importlib.import_module("ray.train.data.tables")


def _equally_long(name: str, columns: Mapping) -> dict[str, Any]:
    lengths = {str(key): len(values) for key, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"The columns of the dataset {name!r} differ in length: {lengths}.")
    return {str(key): values for key, values in columns.items()}


def _stored(block: Block) -> BlockSource:
    """Puts the rows into the store, in pieces that a worker fetches one by one."""
    held = []
    for begin in range(0, len(block), _BLOCK_ROWS):
        piece = block.slice(begin, min(len(block), begin + _BLOCK_ROWS))
        held.append((Held(piece), len(piece)))
    return BlockSource(held)
