"""prepare_model() puts a model on the worker's device and wraps it for training on several."""

from __future__ import annotations

import logging
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from ray.train.optional import require
from ray.train.session import get_session
from ray.train.torch.devices import get_device, make_current

logger = logging.getLogger("ray.train")

_STRATEGIES = ("ddp", "fsdp", None)


def prepare_model(
    model: torch.nn.Module,
    move_to_device: bool | torch.device = True,
    parallel_strategy: str | None = "ddp",
    parallel_strategy_kwargs: dict[str, Any] | None = None,
) -> torch.nn.Module:
    """Moves a model to this worker's device and wraps it so that gradients are shared.

    move_to_device: True, False to leave it where it is, or the device.
    parallel_strategy: "ddp" (DistributedDataParallel), "fsdp" (FullyShardedDataParallel), or None
    for no wrapping. A run of one worker wraps nothing.
    parallel_strategy_kwargs: arguments for the wrapper, before those that are chosen here.

    Raises ValueError for another strategy, RuntimeError for "fsdp" without a GPU and outside of a
    training function.
    """
    session = get_session("ray.train.torch.prepare_model()")
    if parallel_strategy not in _STRATEGIES:
        raise ValueError(
            f"prepare_model(parallel_strategy={parallel_strategy!r}): it must be 'ddp', 'fsdp' or "
            "None."
        )
    wraps = parallel_strategy is not None and session.world_size > 1
    if wraps and parallel_strategy == "fsdp" and not torch.cuda.is_available():
        raise RuntimeError(
            'prepare_model(parallel_strategy="fsdp") needs GPUs: use '
            'ScalingConfig(use_gpu=True), or the strategy "ddp".'
        )
    device = move_to_device if isinstance(move_to_device, torch.device) else get_device()
    make_current(device)
    if move_to_device is not False:
        _say(session, f"The model moves to {device}.")
        model = model.to(device)
    if not wraps:
        return model
    kwargs = dict(parallel_strategy_kwargs or {})
    if parallel_strategy == "fsdp":
        wrapper = require("torch.distributed.fsdp", "parallel_strategy='fsdp'")
        wrapper = wrapper.FullyShardedDataParallel
    else:
        wrapper = DistributedDataParallel
        if device.type == "cuda":
            kwargs = {"device_ids": [device], "output_device": device, **kwargs}
    _say(session, f"The model is wrapped in {wrapper.__name__}.")
    return wrapper(model, **kwargs)


def _say(session: Any, text: str) -> None:
    if session.local_rank == 0:
        logger.info(text)
