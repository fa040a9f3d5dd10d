"""The devices that a worker trains on."""

from __future__ import annotations

import os

import torch

from ray.train.session import get_session

_VISIBLE = "CUDA_VISIBLE_DEVICES"


def get_devices() -> list[torch.device]:
    """The GPUs of this worker as torch numbers them in this process, or the CPU.

    All GPUs that the run has on a node are visible to each of its workers there, so that they can
    copy to each other. Raises RuntimeError outside of a training function, and when a GPU of this
    worker is not visible.
    """
    gpu_ids = get_session("ray.train.torch.get_devices()").gpu_ids
    if not gpu_ids:
        return [torch.device("cpu")]
    return [torch.device(f"cuda:{index}") for index in positions(gpu_ids)]


def get_device() -> torch.device:
    """Returns the first of get_devices()."""
    return get_devices()[0]


def make_current(device: torch.device) -> None:
    """Makes a GPU the current one of this thread, where this torch can use it."""
    # Torch cannot use the GPU on a cluster whose GPUs are only declared, or if it is built for CPUs
    # only.
    if device.type == "cuda" and torch.cuda.is_available():
        torch.cuda.set_device(device)


def positions(gpu_ids: list[str]) -> list[int]:
    """Returns the numbers that these GPUs have in this process; raises RuntimeError for a hidden
    one."""
    visible = [part.strip() for part in os.environ.get(_VISIBLE, "").split(",") if part.strip()]
    # Nothing is hidden, so the numbers are those of the machine.
    if not visible:
        return [int(gpu_id) for gpu_id in gpu_ids]
    missing = [str(gpu_id) for gpu_id in gpu_ids if str(gpu_id) not in visible]
    if missing:
        raise RuntimeError(
            f"This worker has the GPUs {', '.join(map(str, gpu_ids))}, but {_VISIBLE}="
            f"{os.environ[_VISIBLE]} hides {', '.join(missing)}. Do not change that variable in "
            "the training function."
        )
    return [visible.index(str(gpu_id)) for gpu_id in gpu_ids]
