"""Requests of programs to an autoscaler. There is none: a cluster has the nodes that joined it."""

from __future__ import annotations

import importlib
from typing import Any

from ray._private.absent import raise_missing


def __getattr__(name: str) -> Any:
    if name == "sdk":
        return importlib.import_module("ray.autoscaler.sdk")
    raise_missing("ray.autoscaler", name)
