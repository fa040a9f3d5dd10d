"""Interfaces that may change.

`internal_kv` is the head's key-value store, `tqdm_ray` shows progress bars of workers, and two
functions tell where objects are. Other names of Ray raise an error that names them.
"""

from __future__ import annotations

import importlib
from typing import Any

from ray._private.absent import raise_missing

_MODULES = ("internal_kv", "state", "tqdm_ray")
_LAZY = {"get_object_locations": "locations", "get_local_object_locations": "locations"}


def set_resource(resource_name: str, capacity: float, node_id: str | None = None) -> None:
    """Raises DeprecationWarning: a node's resources are given when it starts."""
    raise DeprecationWarning(
        "Dynamic custom resources are deprecated. Consider using placement groups instead, or "
        "specify resources when a node starts, with "
        "the 'resources' option."
    )


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"ray.experimental.{name}")
    if name in _LAZY:
        return getattr(importlib.import_module(f"ray.experimental.{_LAZY[name]}"), name)
    if name == "queue":
        return importlib.import_module("ray.util.queue")

    raise_missing("ray.experimental", name)
