"""GPUs of tasks and actors: the ids they were given, and CUDA_VISIBLE_DEVICES."""

from __future__ import annotations

import os

_VARIABLE = "CUDA_VISIBLE_DEVICES"
# Evaluated at import, which happens before any task has changed the variable.
_named_by_node = bool(os.environ.get(_VARIABLE))


def show_gpus(ids: list[str]):
    """Makes these GPUs the visible ones of this process. Called before user code runs."""
    if os.environ.get("RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES", "0").lower() not in (
        "1",
        "true",
    ):
        os.environ[_VARIABLE] = ",".join(ids)


def public_ids(ids: list[str]) -> list:
    """Converts GPU ids to the form that ray.get_gpu_ids() returns.

    They are numbers, or names when the node's own CUDA_VISIBLE_DEVICES named its devices.
    """
    return ids if _named_by_node else [int(name) if name.isdigit() else name for name in ids]
