"""GPUs of tasks and actors: which ones they were given, and CUDA_VISIBLE_DEVICES."""

from __future__ import annotations

import os

_VARIABLE = "CUDA_VISIBLE_DEVICES"
_named_by_node = bool(os.environ.get(_VARIABLE))  # imported before any task has changed it


def show_gpus(ids: list[str]):
    """Makes these GPUs the visible ones of this process, before its user's code runs."""
    if os.environ.get("RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES", "0").lower() not in (
        "1",
        "true",
    ):
        os.environ[_VARIABLE] = ",".join(ids)


def public_ids(ids: list[str]) -> list:
    """As ray.get_gpu_ids() has them: numbers, but names when the node's own variable named its devices."""
    return ids if _named_by_node else [int(name) if name.isdigit() else name for name in ids]
