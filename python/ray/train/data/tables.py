"""Datasets that need pyarrow: its tables, and files of Parquet and CSV."""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from typing import Any, Iterator

import pyarrow
import pyarrow.csv
import pyarrow.parquet

from ray.train.data.blocks import Block
from ray.train.data.ranges import part_of

_SUFFIXES = (".parquet", ".csv")


class ArrowBlock(Block):
    """Rows of a pyarrow.Table."""

    def __init__(self, table: pyarrow.Table):
        self._table = table

    def __len__(self):
        return self._table.num_rows

    def slice(self, begin, end):
        return ArrowBlock(self._table.slice(begin, end - begin))

    def rows(self):
        for batch in self._table.to_batches():
            yield from batch.to_pylist()

    def columns(self):
        return {
            name: column.to_numpy() if _is_flat(column.type) else column.to_pylist()
            for name, column in zip(self._table.column_names, self._table.columns)
        }

    def joined(self, others):
        return ArrowBlock(pyarrow.concat_tables([self._table, *(one._table for one in others)]))

    def to_arrow(self):
        return self._table

    def to_pandas(self):
        return self._table.to_pandas()


def _is_flat(kind: pyarrow.DataType) -> bool:
    """Returns whether NumPy can hold the values as they are."""
    types = pyarrow.types
    return types.is_integer(kind) or types.is_floating(kind) or types.is_temporal(kind)


@dataclass
class FileSource:
    """Files of one format. Every worker reads its own rows, so all nodes must see the paths."""

    paths: list[str]
    # The number of rows of each file.
    counts: list[int]

    def shard(self, rank: int, ranks: int) -> FileRange:
        begin, end = part_of(sum(self.counts), rank, ranks)
        return FileRange(self.paths, self.counts, begin, end)

    def whole(self) -> FileRange:
        return FileRange(self.paths, self.counts, 0, sum(self.counts))


@dataclass
class FileRange:
    """Rows `begin` to before `end` of all files together."""

    paths: list[str]
    counts: list[int]
    begin: int
    end: int

    def __len__(self):
        return self.end - self.begin

    def blocks(self) -> Iterator[Block]:
        """Reads the files piece by piece. Raises OSError for one that is not there."""
        first = 0
        for path, count in zip(self.paths, self.counts):
            begin, end = max(self.begin, first), min(self.end, first + count)
            if begin < end:
                yield from _rows_of(path, begin - first, end - first)
            first += count


def _rows_of(path: str, begin: int, end: int) -> Iterator[Block]:
    first = 0
    pieces = _pieces(path, begin, end)
    for skipped, table in pieces:
        first += skipped
        low, high = max(begin - first, 0), min(end - first, table.num_rows)
        if low < high:
            yield ArrowBlock(table.slice(low, high - low))
        first += table.num_rows
        if first >= end:
            return


def _pieces(path: str, begin: int, end: int) -> Iterator[tuple[int, pyarrow.Table]]:
    """Yields (rows left out before it, table) in order; row groups outside are not read."""
    if path.endswith(".csv"):
        for batch in pyarrow.csv.open_csv(path):
            yield 0, pyarrow.Table.from_batches([batch])
        return
    with pyarrow.parquet.ParquetFile(path) as file:
        first = skipped = 0
        for group in range(file.num_row_groups):
            count = file.metadata.row_group(group).num_rows
            if first + count <= begin or first >= end:
                skipped += count
            else:
                yield skipped, file.read_row_group(group)
                skipped = 0
            first += count


def file_source(path: str) -> FileSource:
    """The dataset in a file, in all such files of a directory, or in those of a pattern.

    Raises FileNotFoundError if there is none, ValueError for other files.
    """
    found = [path]
    if os.path.isdir(path):
        found = [
            os.path.join(path, name)
            for name in sorted(os.listdir(path))
            if name.endswith(_SUFFIXES)
        ]
    elif not os.path.exists(path):
        found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise FileNotFoundError(2, "The dataset has no files of Parquet or CSV here", path)
    others = [name for name in found if not name.endswith(_SUFFIXES)]
    if others:
        raise ValueError(f"A dataset file must end in {' or '.join(_SUFFIXES)}, not {others[0]}.")
    return FileSource(found, [_count(name) for name in found])


def _count(path: str) -> int:
    if path.endswith(".csv"):
        return sum(batch.num_rows for batch in pyarrow.csv.open_csv(path))
    return pyarrow.parquet.read_metadata(path).num_rows


def block_of(table: Any) -> Block:
    return ArrowBlock(table)
