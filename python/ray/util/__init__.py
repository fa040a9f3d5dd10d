"""Helpers on top of tasks and actors, each imported on first use.

A name of Ray that is not in this release raises an error that says so.
"""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ray import _raylet
from ray._private.absent import raise_missing
from ray._private.session import current_namespace, ensure_connected, global_worker

if TYPE_CHECKING:
    from ray.util import accelerators
    from ray.util.actor_pool import ActorPool
    from ray.util.check_serialize import inspect_serializability
    from ray.util.debug import disable_log_once_globally, enable_periodic_logging, log_once
    from ray.util.placement_group import (
        get_current_placement_group,
        get_placement_group,
        placement_group,
        placement_group_table,
        remove_placement_group,
    )
    from ray.util.results import as_completed, map_unordered
    from ray.util.serialization import deregister_serializer, register_serializer

__all__ = [
    "ActorPool",
    "accelerators",
    "as_completed",
    "deregister_serializer",
    "disable_log_once_globally",
    "enable_periodic_logging",
    "get_current_placement_group",
    "get_node_instance_id",
    "get_node_ip_address",
    "get_placement_group",
    "inspect_serializability",
    "list_named_actors",
    "log_once",
    "map_unordered",
    "placement_group",
    "placement_group_table",
    "register_serializer",
    "remove_placement_group",
]

# Maps an attribute to the module that defines it.
_LAZY = {
    "PublicAPI": "annotations",
    "ActorPool": "actor_pool",
    "inspect_serializability": "check_serialize",
    "as_completed": "results",
    "map_unordered": "results",
    "register_serializer": "serialization",
    "deregister_serializer": "serialization",
    "log_once": "debug",
    "disable_log_once_globally": "debug",
    "enable_periodic_logging": "debug",
    "placement_group": "placement_group",
    "remove_placement_group": "placement_group",
    "get_placement_group": "placement_group",
    "get_current_placement_group": "placement_group",
    "placement_group_table": "placement_group",
}
_MODULES = (
    "accelerators",
    "client",
    "debug",
    "metrics",
    "multiprocessing",
    "pdb",
    "queue",
    "ray_debugpy",
    "rpdb",
    "scheduling_strategies",
    "state",
)


def get_node_ip_address(address: str | None = None) -> str:
    """Returns the IP address of the node of this process.

    Before ray.init() it is RAY_NODE_IP_ADDRESS, or else the address of this machine on the way to
    `address` (HOST:PORT), or on the way to other networks; nothing is connected or started.
    """
    if global_worker.connected:
        return global_worker.context["node_ip"]
    peer = (address or "").rpartition(":")[0]
    return os.environ.get("RAY_NODE_IP_ADDRESS") or _raylet.detect_node_ip(peer)


def get_node_instance_id() -> str:
    """Returns the machine's id in its cloud (RAY_CLOUD_INSTANCE_ID), '' when there is none."""
    return os.environ.get("RAY_CLOUD_INSTANCE_ID", "")


def list_named_actors(all_namespaces: bool = False) -> list:
    """Returns the names of living named actors in this namespace.

    With all_namespaces it returns dicts with `namespace` and `name`.
    """
    ensure_connected()
    dead = 3
    actors = [a for a in _raylet.list_actors(all_namespaces) if a["name"] and a["state"] != dead]
    if all_namespaces:
        return [{"namespace": a["namespace"], "name": a["name"]} for a in actors]
    return [a["name"] for a in actors if a["namespace"] == current_namespace()]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = globals()[name] = getattr(importlib.import_module(f"ray.util.{_LAZY[name]}"), name)
        return value
    if name in _MODULES:
        return importlib.import_module(f"ray.util.{name}")

    raise_missing("ray.util", name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_MODULES})


class _Package(ModuleType):
    """This package, whose attribute `placement_group` is the function, as in Ray.

    The import system sets the attribute to the module of the same name whenever that is imported.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "placement_group" and isinstance(value, ModuleType):
            value = value.placement_group
        super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        # Functions that mention this package are pickled with it, as with any other module.
        return _imported, (self.__name__,)


def _imported(name: str) -> ModuleType:
    return sys.modules[name]


sys.modules[__name__].__class__ = _Package
