"""Batches as tensors."""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch.utils.data import default_collate

from ray.train.data.blocks import Block
from ray.train.data.iterator import arrays
from ray.train.optional import available, require
from ray.train.torch.data_loader import moved
from ray.train.torch.devices import get_device


class Converter:
    """Makes a batch of tensors out of a block."""

    def __init__(
        self,
        device: Any,
        dtypes: Any,
        collate: Callable[[dict[str, Any]], Any] | None,
        pin_memory: bool,
    ):
        """device: "auto" for that of the worker, which then must be in a training function."""
        self._device = get_device() if device == "auto" else torch.device(device)
        self._dtypes = dtypes
        self._collate = collate
        self._pins = pin_memory and self._device.type == "cuda"

    def __call__(self, block: Block) -> Any:
        if self._collate is not None:
            numpy = require("numpy", "iter_torch_batches(collate_fn=...)")
            batch = self._collate(arrays(numpy, block))
        else:
            batch = {
                name: self._cast(name, tensor_of(values))
                for name, values in block.columns().items()
            }
        if self._pins:
            batch = moved(batch, lambda value: value.pin_memory())
        return moved(batch, lambda value: value.to(self._device))

    def _cast(self, name: str, value: Any) -> Any:
        dtypes = self._dtypes
        dtype = dtypes.get(name) if isinstance(dtypes, dict) else dtypes
        if dtype is None or not isinstance(value, torch.Tensor):
            return value
        return value.to(dtype)


def tensor_of(values: Any) -> Any:
    """Returns a column as a tensor. A list of texts stays a list; tuples and dicts become those of
    tensors."""
    if isinstance(values, torch.Tensor):
        return values
    if isinstance(values, (list, tuple, range)):
        return default_collate(list(values)) if len(values) else torch.tensor([])
    if available("numpy") and values.dtype.kind in "biufc":
        # Arrays from the object store are read-only, and tensors cannot be, so those arrays are
        # copied.
        return torch.from_numpy(values if values.flags.writeable else values.copy())
    return default_collate(list(values))
