"""prepare_data_loader(): each worker gets its own part of the data, on its own device."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any, Iterator

import torch
from torch.utils.data import DataLoader, IterableDataset, RandomSampler, SequentialSampler
from torch.utils.data.distributed import DistributedSampler

from ray.train.profiles.steps import BATCH
from ray.train.session import get_session
from ray.train.times import DATA
from ray.train.torch.devices import get_device

logger = logging.getLogger("ray.train")


def prepare_data_loader(
    data_loader: DataLoader,
    add_dist_sampler: bool = True,
    move_to_device: bool = True,
    auto_transfer: bool = True,
) -> DataLoader:
    """Makes a loader that yields this worker's part of the data, batches on its device.

    add_dist_sampler: with several workers, replaces the sampler by a DistributedSampler, unless
    there is one or the dataset is iterable. It shuffles if the old one was not sequential; call
    `loader.sampler.set_epoch(epoch)` before each epoch. The batch size is that of one worker.
    move_to_device: tensors in tuples, lists and mappings move; one batch is fetched ahead.
    auto_transfer: copies to a GPU run beside its computations.

    Raises TypeError for what is no DataLoader, ValueError for one whose batch sampler has no
    batch_size, and RuntimeError outside of a training function.
    """
    session = get_session("ray.train.torch.prepare_data_loader()")
    if not isinstance(data_loader, DataLoader):
        raise TypeError(
            "prepare_data_loader() needs a torch.utils.data.DataLoader, not a "
            f"{type(data_loader).__name__}."
        )
    if add_dist_sampler and session.world_size > 1 and _is_undivided(data_loader):
        data_loader = _divided(data_loader, session)
    if not move_to_device:
        return data_loader
    device = get_device()
    beside = auto_transfer and device.type == "cuda"
    return PreparedDataLoader(data_loader, device, beside, session)


def _is_undivided(loader: DataLoader) -> bool:
    if isinstance(loader.dataset, IterableDataset):
        return False
    return not isinstance(loader.sampler, DistributedSampler)


def _divided(loader: DataLoader, session: Any) -> DataLoader:
    """Returns a loader of the same data for this rank alone."""
    if not isinstance(loader.sampler, (SequentialSampler, RandomSampler)):
        if session.world_rank == 0:
            logger.warning(
                "prepare_data_loader() replaces the sampler %s by a DistributedSampler. To keep "
                "your own, let it yield this rank's part and pass add_dist_sampler=False.",
                type(loader.sampler).__name__,
            )
    sampler = DistributedSampler(
        loader.dataset,
        num_replicas=session.world_size,
        rank=session.world_rank,
        shuffle=not isinstance(loader.sampler, SequentialSampler),
    )
    batch_size, drop_last = _batches(loader)
    options = {
        "batch_size": batch_size,
        "drop_last": drop_last,
        "num_workers": loader.num_workers,
        "collate_fn": loader.collate_fn,
        "pin_memory": loader.pin_memory,
        "timeout": loader.timeout,
        "worker_init_fn": loader.worker_init_fn,
        "generator": loader.generator,
    }
    if loader.num_workers > 0:
        options["persistent_workers"] = loader.persistent_workers
        options["prefetch_factor"] = loader.prefetch_factor
        options["multiprocessing_context"] = loader.multiprocessing_context
    return DataLoader(loader.dataset, sampler=sampler, **options)


def _batches(loader: DataLoader) -> tuple[int | None, bool]:
    """Returns (batch size, whether an incomplete last batch is dropped)."""
    if loader.batch_size is not None or loader.batch_sampler is None:
        return loader.batch_size, loader.drop_last
    batch_size = getattr(loader.batch_sampler, "batch_size", None)
    if not isinstance(batch_size, int):
        raise ValueError(
            f"prepare_data_loader() cannot divide the batches of "
            f"{type(loader.batch_sampler).__name__} among workers. Let it yield this rank's "
            "batches, and pass add_dist_sampler=False."
        )
    return batch_size, bool(getattr(loader.batch_sampler, "drop_last", False))


class PreparedDataLoader(DataLoader):
    """Another DataLoader's batches, moved to a device, one of them fetched ahead.

    It has the attributes of that loader, `sampler` among them. wait_s: seconds that the training
    thread has spent here so far, waiting for data and starting copies.
    """

    def __init__(self, loader: DataLoader, device: torch.device, beside: bool, session: Any = None):
        """`beside` says whether copies run in a CUDA stream of their own. `session` is that of the
        rank, and counts batches and the time in which the rank waits for them."""
        # The attributes are shared and not made anew, because making them would check and change
        # them, and nothing here depends on them.
        self.__dict__.update(loader.__dict__)
        self.__dict__.update(
            _loader=loader,
            _device=device,
            _stream=torch.cuda.Stream(device) if beside else None,
            _times=session.times if session is not None else None,
            _steps=session.steps if session is not None else None,
            wait_s=0.0,
        )

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        source = iter(self._loader)
        ahead = self._timed_next(source)
        while ahead is not _END:
            batch = ahead
            # This comes before the next copy is begun, for which the computations need not wait.
            self._receive(batch)
            ahead = self._timed_next(source)
            if self._steps is not None:
                self._steps.made(BATCH)
            yield batch

    def _timed_next(self, source: Iterator[Any]) -> Any:
        begin = time.perf_counter()
        try:
            batch = next(source, _END)
            if batch is _END:
                return _END
            if self._stream is None:
                return moved(batch, lambda value: value.to(self._device))
            with torch.cuda.stream(self._stream):
                return moved(batch, self._copy_beside)
        finally:
            waited = time.perf_counter() - begin
            self.__dict__["wait_s"] += waited
            if self._times is not None:
                self._times.add(DATA, waited)

    def _copy_beside(self, value: Any) -> Any:
        # Only a copy from pinned memory is asynchronous; any other one is correct, too.
        if isinstance(value, torch.Tensor):
            return value.to(self._device, non_blocking=True)
        return value.to(self._device)

    def _receive(self, batch: Any) -> None:
        """Orders the computations on a batch after its copy."""
        if self._stream is None:
            return
        current = torch.cuda.current_stream(self._device)
        current.wait_stream(self._stream)
        for tensor in _tensors(batch):
            # The memory must not be given to others before this stream has used it.
            tensor.record_stream(current)


_END = object()


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """Yields all tensors in a batch, including those in attributes of objects that moved as a
    whole."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)
    elif callable(getattr(value, "to", None)):
        for item in getattr(value, "__dict__", {}).values():
            yield from _tensors(item)


def moved(value: Any, function: Any) -> Any:
    """Applies the function to all that has a method `to`; strings and others stay as they are."""
    # This comes before the containers, because some of them know better how they are moved
    # (PackedSequence).
    if callable(getattr(value, "to", None)):
        return function(value)
    if isinstance(value, Mapping):
        items = {key: moved(item, function) for key, item in value.items()}
        return items if type(value) is dict else _rebuilt(value, items)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(moved(item, function) for item in value))
    if isinstance(value, tuple):
        return tuple(moved(item, function) for item in value)
    if isinstance(value, list):
        return [moved(item, function) for item in value]
    return value


def _rebuilt(mapping: Mapping, items: dict) -> Mapping:
    """Returns a mapping of the same class if its constructor takes a dict, else the dict."""
    try:
        return type(mapping)(items)
    except TypeError:
        return items
