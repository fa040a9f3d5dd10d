"""The functions by which workers enter and leave a process group. TorchBackend calls them in the
workers."""

from __future__ import annotations

import contextlib
import datetime
import logging
import os
from typing import Any, Iterator

import torch
import torch.distributed

from ray.train.interfaces import interface_of
from ray.train.session import get_session
from ray.train.torch.devices import get_device, make_current

logger = logging.getLogger("ray.train")

# These variables tell the transports their network interface.
_INTERFACE_VARIABLES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
# The ranks of this process's group meet in this store; on rank 0 it serves the others.
_store: torch.distributed.TCPStore | None = None


def prepare(backend: str | None) -> int | None:
    """Sets the environment of this worker; rank 0 listens at a port of its address and returns it.

    Raises RuntimeError if this torch cannot train on several processes.
    """
    if not torch.distributed.is_available():
        raise RuntimeError(
            "This torch was built without torch.distributed, so workers cannot form a process "
            "group. Install another build of PyTorch on every node."
        )
    session = get_session()
    device = get_device()
    os.environ["ACCELERATE_TORCH_DEVICE"] = str(device)
    if backend == "nccl" and not os.environ.get("TORCH_NCCL_BLOCKING_WAIT"):
        # A failed collective then ends the process, which is noticed, instead of leaving it
        # waiting.
        os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1")
    _choose_interface(session.node_ip)
    return _listen(session.node_ip) if session.world_rank == 0 else None


def _listen(ip: str) -> int:
    """Opens the store in which the ranks meet, and returns its port.

    torch would open it in init_process_group(), at a port that was free a moment ago, and a rank
    that comes before it does waits for a second until it tries again.
    """
    global _store
    _store = torch.distributed.TCPStore(ip, 0, None, True, wait_for_workers=False)
    return _store.port


def _choose_interface(ip: str) -> None:
    """Makes gloo and NCCL use the cluster's network, unless the user chose another.

    By themselves they take the address of the host's name, which may belong to another network.
    """
    name = interface_of(ip)
    if name is not None:
        for variable in _INTERFACE_VARIABLES:
            os.environ.setdefault(variable, name)


def enter(config: Any, address: tuple[str, int]) -> None:
    """Enters the process group, whose rank 0 listens at the address; waits for all ranks."""
    global _store
    session = get_session()
    host, port = address
    if config.init_method == "env":
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = host, str(port)
    timeout = datetime.timedelta(seconds=config.timeout_s)
    if _store is None:
        _store = torch.distributed.TCPStore(
            host, port, None, False, timeout=timeout, wait_for_workers=False
        )
    else:
        _store.set_timeout(timeout)
    make_current(get_device())
    torch.distributed.init_process_group(
        backend=config.backend,
        store=_store,
        rank=session.world_rank,
        world_size=session.world_size,
        timeout=timeout,
    )
    if session.world_rank == 0:
        logger.info(
            "The process group of %d ranks is set up (backend %s, %s:%d).",
            session.world_size,
            config.backend,
            host,
            port,
        )


def leave(fewest: int = 2) -> None:
    """Destroys the process group if it has several ranks, and frees cached memory of GPUs.

    fewest: the number of ranks from which on it is destroyed.
    """
    if torch.distributed.is_initialized() and torch.distributed.get_world_size() >= fewest:
        torch.distributed.destroy_process_group()
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


@contextlib.contextmanager
def training_thread() -> Iterator[None]:
    """Surrounds the training function in its thread: sets the device, and how many threads it may
    use."""
    _limit_threads(os.environ.get("OMP_NUM_THREADS", ""))
    make_current(get_device())
    yield


def _limit_threads(limit: str) -> None:
    # OpenMP reads the variable once, when torch is imported. A process that was forked from one
    # with torch in it would ignore the variable.
    if limit.isdigit() and int(limit) > 0 and torch.get_num_threads() != int(limit):
        torch.set_num_threads(int(limit))


# torchrun sets all of these.
_TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def enter_local(config: Any) -> bool:
    """In local mode: enters the group of torchrun if this process is one of its workers.

    Returns whether it did. With NCCL the process gets the GPU of its local rank.
    """
    session = get_session()
    if config.backend == "nccl" and torch.cuda.is_available():
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
        index = session.local_rank
        session.gpu_ids = [visible[index].strip() if visible != [""] else str(index)]
    if not all(name in os.environ for name in _TORCHRUN) or torch.distributed.is_initialized():
        return False
    torch.distributed.init_process_group(
        backend=config.backend,
        init_method="env://",
        timeout=datetime.timedelta(seconds=config.timeout_s),
    )
    return True
