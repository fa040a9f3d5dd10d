"""Blocks: some rows of a dataset, kept as a list of rows or as columns."""

from __future__ import annotations

import abc
from typing import Any, Iterator, Sequence

from ray.train.optional import require

# Rows that are no dicts have this one column.
ITEM = "item"


class Block(abc.ABC):
    """Rows that belong together. Immutable."""

    @abc.abstractmethod
    def __len__(self) -> int:
        """The number of rows."""

    @abc.abstractmethod
    def slice(self, begin: int, end: int) -> Block:
        """The rows from `begin` to before `end`."""

    @abc.abstractmethod
    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows, each a dict of column and value."""

    @abc.abstractmethod
    def columns(self) -> dict[str, Sequence[Any]]:
        """The values of each column."""

    @abc.abstractmethod
    def joined(self, others: list[Block]) -> Block:
        """These rows and those of other blocks of the same kind."""

    def to_arrow(self) -> Any:
        """The rows as a pyarrow.Table. Raises ImportError without pyarrow."""
        arrow = require("pyarrow", 'batch_format="pyarrow"')
        return arrow.table({name: _plain(values) for name, values in self.columns().items()})

    def to_pandas(self) -> Any:
        """The rows as a pandas.DataFrame. Raises ImportError without pandas."""
        pandas = require("pandas", 'batch_format="pandas"')
        return pandas.DataFrame({name: _plain(v) for name, v in self.columns().items()})


def _plain(values: Sequence[Any]) -> Any:
    """Turns columns of several dimensions into lists, which tables of pandas and Arrow take."""
    is_array = getattr(values, "ndim", 1) > 1
    return [list(value) for value in values] if is_array else values


class RowBlock(Block):
    """A list of rows. Rows that are no dicts have one column, "item"."""

    def __init__(self, rows: list[Any]):
        self._rows = rows

    def __len__(self):
        return len(self._rows)

    def slice(self, begin, end):
        return RowBlock(self._rows[begin:end])

    def rows(self):
        for row in self._rows:
            yield row if isinstance(row, dict) else {ITEM: row}

    def columns(self):
        rows = list(self.rows())
        names = list(dict.fromkeys(name for row in rows for name in row))
        return {name: [row.get(name) for row in rows] for name in names}

    def joined(self, others):
        rows = list(self._rows)
        for other in others:
            rows += other._rows
        return RowBlock(rows)


class ColumnBlock(Block):
    """Columns of equal length: NumPy arrays, tensors or lists."""

    def __init__(self, columns: dict[str, Any]):
        self._columns = columns

    def __len__(self):
        return next((len(values) for values in self._columns.values()), 0)

    def slice(self, begin, end):
        return ColumnBlock({name: values[begin:end] for name, values in self._columns.items()})

    def rows(self):
        for index in range(len(self)):
            yield {name: values[index] for name, values in self._columns.items()}

    def columns(self):
        return self._columns

    def joined(self, others):
        return ColumnBlock(
            {
                name: _concatenated([values, *(other._columns[name] for other in others)])
                for name, values in self._columns.items()
            }
        )


def _concatenated(parts: list[Any]) -> Any:
    first = parts[0]
    if isinstance(first, (list, tuple)):
        return [value for part in parts for value in part]
    package = type(first).__module__.partition(".")[0]
    if package == "torch":
        return require("torch", "a dataset of tensors").cat(parts)
    return require("numpy", "a dataset of arrays").concatenate(parts)
