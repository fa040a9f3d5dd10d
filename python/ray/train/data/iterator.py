"""DataIterator: a worker's part of a dataset."""

from __future__ import annotations

import functools
import importlib
from typing import Any, Callable, Iterator

from ray.train import checks
from ray.train.data.batches import batches_of, shuffled
from ray.train.data.blocks import Block
from ray.train.data.prefetch import ahead
from ray.train.optional import require

_FORMATS = ("default", "numpy", "pandas", "pyarrow")


class Passes:
    """Values that may be walked again and again: each iter() begins a pass of its own.

    next() takes the values of one further pass, which belongs to this object.
    """

    def __init__(self, begin: Callable[[], Iterator[Any]]):
        self._begin = begin
        self._own: Iterator[Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        return self._begin()

    def __next__(self) -> Any:
        if self._own is None:
            self._own = self._begin()
        return next(self._own)


class DataIterator:
    """A worker's part, from get_dataset_shard(). It pickles.

    The parts of the ranks have equally many rows. What the iter_ methods return may be walked
    again and again, as an epoch of training each.
    """

    def __init__(self, name: str, part: Any):
        """`part` has a method blocks(), which returns an iterator of Blocks."""
        self._name = name
        self._part = part

    def __repr__(self):
        return f"DataIterator(name={self._name!r})"

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(
            f"DataIterator.{name}: not in this release, which has iter_rows(), iter_batches() and "
            "iter_torch_batches() of Ray Data."
        )

    def iter_rows(self) -> Passes:
        """Returns the rows, each a dict of column and value; {"item": row} for other rows."""
        return Passes(lambda: (row for block in self._part.blocks() for row in block.rows()))

    def iter_batches(
        self,
        *,
        prefetch_batches: int = 1,
        batch_size: int | None = 256,
        batch_format: str | None = "default",
        drop_last: bool = False,
        local_shuffle_buffer_size: int | None = None,
        local_shuffle_seed: int | None = None,
    ) -> Passes:
        """Returns batches of rows.

        batch_format: "numpy" or "default" (dicts of column and array), "pandas", "pyarrow".
        batch_size: rows of this worker; None for what the dataset has together.
        prefetch_batches: how many are made ahead, in a thread.
        local_shuffle_buffer_size: rows among which the next one is chosen; None for their order.

        Raises ValueError for another format or size, ImportError without the format's package.
        """
        make = self._batches(batch_size, drop_last, local_shuffle_buffer_size, local_shuffle_seed)
        return _converted(_converter(batch_format), make, prefetch_batches)

    def iter_torch_batches(  # Ray's signature
        self,
        *,
        prefetch_batches: int = 1,
        batch_size: int | None = 256,
        dtypes: Any = None,
        device: Any = "auto",
        collate_fn: Callable[[dict[str, Any]], Any] | None = None,
        drop_last: bool = False,
        local_shuffle_buffer_size: int | None = None,
        local_shuffle_seed: int | None = None,
        pin_memory: bool = False,
    ) -> Passes:
        """Returns dicts of column and tensor, on the device that this worker trains on.

        dtypes: a torch.dtype, or a dict of column and dtype. device: another one than "auto".
        collate_fn: makes a batch of the dict of NumPy arrays, instead of dtypes.
        pin_memory: copies come from pinned memory. The other arguments are those of
        iter_batches(). Raises ValueError for dtypes and collate_fn together.
        """
        if collate_fn is not None and dtypes is not None:
            raise ValueError("iter_torch_batches(): collate_fn and dtypes exclude each other.")
        require("torch", "iter_torch_batches()")
        make = self._batches(batch_size, drop_last, local_shuffle_buffer_size, local_shuffle_seed)
        tensors = importlib.import_module("ray.train.data.tensors")
        convert = tensors.Converter(device, dtypes, collate_fn, pin_memory)
        return _converted(convert, make, prefetch_batches)

    def _batches(
        self, batch_size: int | None, drop_last: bool, buffer_size: int | None, seed: int | None
    ) -> Callable[[], Iterator[Block]]:
        if batch_size is not None:
            checks.check_whole_number("iter_batches", "batch_size", batch_size, 1, "or None")
        if buffer_size is not None:
            checks.check_whole_number("iter_batches", "local_shuffle_buffer_size", buffer_size, 1)

        def make():
            blocks = self._part.blocks()
            if buffer_size is not None:
                blocks = shuffled(blocks, buffer_size, seed)
            return batches_of(blocks, batch_size, drop_last)

        return make


def _converted(
    convert: Callable[[Block], Any], make: Callable[[], Iterator[Block]], prefetch_batches: Any
) -> Passes:
    checks.check_whole_number("iter_batches", "prefetch_batches", prefetch_batches, 0)
    return Passes(lambda: ahead(lambda: map(convert, make()), prefetch_batches))


def _converter(batch_format: str | None) -> Callable[[Block], Any]:
    if batch_format not in (*_FORMATS, None):
        raise ValueError(
            f"iter_batches(batch_format={batch_format!r}): it must be one of {', '.join(_FORMATS)}."
        )
    if batch_format == "pandas":
        return lambda block: block.to_pandas()
    if batch_format == "pyarrow":
        return lambda block: block.to_arrow()
    numpy = require("numpy", "iter_batches()")
    return functools.partial(arrays, numpy)


def arrays(numpy: Any, block: Block) -> dict[str, Any]:
    """Returns the columns as NumPy arrays. Where values differ in shape, the array holds
    objects."""
    return {name: _array(numpy, values) for name, values in block.columns().items()}


def _array(numpy: Any, values: Any) -> Any:
    try:
        return numpy.asarray(values)
    except ValueError:
        # The values have no common shape.
        ragged = numpy.empty(len(values), dtype=object)
        ragged[:] = values
        return ragged
