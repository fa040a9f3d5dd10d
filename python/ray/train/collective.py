"""Calls with which the ranks of a run wait for each other. They need no process group."""

from __future__ import annotations

import time
from typing import Any

from ray.train.session import get_session
from ray.train.times import COLLECTIVE

__all__ = ["barrier", "broadcast_from_rank_zero"]


def barrier() -> None:
    """Returns when every rank of the group has called it.

    Raises RuntimeError outside of a training function, and when ranks make different calls;
    TimeoutError when RAY_TRAIN_COLLECTIVE_TIMEOUT_S has passed and ranks are missing.
    """
    session = get_session("ray.train.collective.barrier")
    begin = time.perf_counter()
    try:
        session.meet("barrier")
    finally:
        session.times.add(COLLECTIVE, time.perf_counter() - begin)


def broadcast_from_rank_zero(data: Any) -> Any:
    """Returns rank 0's `data` on every rank; the arguments of the others are ignored.

    It is for small values that pickle: beyond 1000 bytes a warning is logged. Raises like
    barrier().
    """
    session = get_session("ray.train.collective.broadcast_from_rank_zero")
    begin = time.perf_counter()
    try:
        return session.broadcast(data)
    finally:
        session.times.add(COLLECTIVE, time.perf_counter() - begin)
