"""Placement groups: bundles of resources that are reserved together, all or none.

Tasks and actors run in them with scheduling_strategy=PlacementGroupSchedulingStrategy(group).
"""

from __future__ import annotations

import math
import time
from typing import Any, Dict, List, Optional

from ray import _raylet
from ray._private import group_arguments
from ray._private.export import Definition
from ray._private.group_handle import GroupHandle
from ray._private.ids import PlacementGroupID
from ray._private.session import current_namespace, ensure_connected
from ray._private.worker import put
from ray._raylet import ObjectRef
from ray.exceptions import ActorAlreadyExistsError, RaySystemError
from ray.remote_function import RemoteFunction
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

__all__ = [
    "VALID_PLACEMENT_GROUP_STRATEGIES",
    "PlacementGroup",
    "check_placement_group_index",
    "get_current_placement_group",
    "get_placement_group",
    "placement_group",
    "placement_group_table",
    "remove_placement_group",
    "validate_placement_group",
]

VALID_PLACEMENT_GROUP_STRATEGIES = set(group_arguments.STRATEGIES)
# Their order is that of the numbers of GroupState in the protocol.
_STATES = ("PENDING", "PREPARED", "CREATED", "REMOVED", "RESCHEDULING")
_REMOVED = _STATES.index("REMOVED")
_LOOK_AGAIN_S = 0.05


class PlacementGroup(GroupHandle):
    """A handle to a placement group. It may be sent to other processes and does not keep the group.

    Handles are equal when they mean the same group.
    """

    @staticmethod
    def empty() -> PlacementGroup:
        """The handle that means no group: what runs in it runs in none."""
        return PlacementGroup(PlacementGroupID.nil())

    def ready(self) -> ObjectRef[PlacementGroup]:
        """A reference that is ready when all bundles are reserved; its value is the group.

        Its value is the error TaskPlacementGroupRemoved when the group is removed.
        """
        if self.is_empty:
            return put(self)
        # The removal is looked for first, because a task that is sent to a group after its removal
        # waits for ever.
        key = self.id.binary()
        if _raylet.wait_group(key, 0) is None and _is_removed(_raylet.group_info(key)):
            return _raylet.removed_group_ref()
        return _ready_function().options(scheduling_strategy=_inside(self)).remote(self)

    def wait(self, timeout_seconds: float = 30) -> bool:
        """Waits until all bundles are reserved: True; False when the time has passed.

        `timeout_seconds` may be a fraction, 0 to look only, or infinite. Raises Exception when the
        group has been removed. A group that the cluster does not know is waited for.
        """
        seconds = _seconds(timeout_seconds)
        if self.is_empty or seconds < 0:
            return False
        key = self.id.binary()
        end = time.monotonic() + seconds
        while True:
            left = max(0.0, end - time.monotonic())
            created = _raylet.wait_group(key, None if math.isinf(left) else left)
            if created is not None:
                return created
            info = _raylet.group_info(key)
            if _is_removed(info):
                why = f": {info['why']}" if info["why"] else ""
                raise Exception(f"Placement group {self.id} does not exist{why}.")
            # The group is waited for, since its registration may still be on the way from another
            # process.
            left = end - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(_LOOK_AGAIN_S, left))


def placement_group(
    bundles: List[Dict[str, float]],
    strategy: Optional[str] = None,
    name: str = "",
    lifetime: Optional[str] = None,
    _soft_target_node_id: Optional[str] = None,
    bundle_label_selector: Optional[List[Dict[str, str]]] = None,
    topology_strategy: Optional[Dict[str, str]] = None,
) -> PlacementGroup:
    """Asks for a placement group, and returns its handle at once.

    bundles: the amounts that each bundle reserves on one node, by resource name: whole or
        fractional numbers of a resource (GPU above 1 whole), bytes of memory.
    strategy: "PACK" (None): on few nodes; "SPREAD": on different nodes as far as possible;
        "STRICT_PACK": on one node; "STRICT_SPREAD": each on a node of its own.
    name: unique in the namespace, for get_placement_group(); the call then waits for the cluster.
    lifetime: None: the group is removed with its job or, when a detached actor creates it, with
        that actor; "detached": it stays until it is removed.
    _soft_target_node_id: the node (id in hex) that a STRICT_PACK group prefers.
    bundle_label_selector: for each bundle, what labels of the node must be, as in label_selector.
    topology_strategy: {label: "STRICT_PACK"}: all bundles on nodes where the label has the same
        value; instead of `strategy`, {"ray.io/node-id": strategy} may be given as well.

    Raises ValueError for wrong arguments, TypeError for a name that is no text, and RaySystemError
    when the name is taken or the cluster cannot be reached.
    """
    validate_placement_group(
        bundles,
        strategy,
        lifetime,
        _soft_target_node_id,
        bundle_label_selector,
        topology_strategy,
    )
    if not isinstance(name, (str, bytes)):
        raise TypeError(f"placement_group: name is a string, got {type(name).__name__}")
    ensure_connected()
    spec = group_arguments.spec_of(
        bundles, strategy, _soft_target_node_id, bundle_label_selector, topology_strategy
    )
    spec.update(name=name, detached=lifetime == "detached")
    return _created(spec, bundles)


def placement_group_of_actor(
    bundles: List[Dict[str, float]],
    strategy: str,
    name: str,
    bundle_label_selector: Optional[List[Dict[str, str]]] = None,
) -> PlacementGroup:
    """Asks for a group that the cluster removes when the actor that calls this is dead.

    Not in Ray, whose groups of an actor stay until the job ends. Arguments and errors are those of
    placement_group(), and must be valid.
    """
    spec = group_arguments.spec_of(bundles, strategy, None, bundle_label_selector, None)
    spec.update(name=name, detached=False, ends_with_actor=True)
    return _created(spec, bundles)


def _created(spec: Dict[str, Any], bundles: List[Dict[str, float]]) -> PlacementGroup:
    name = spec["name"]
    spec["ray_namespace"] = current_namespace()
    try:
        group_id = _raylet.create_group(spec)
    except ActorAlreadyExistsError:  # The binding raises this for anything that exists already.
        raise RaySystemError(
            f"Failed to create a placement group because name {name!r} already exists."
        ) from None
    return PlacementGroup(
        PlacementGroupID(group_id),
        [{key: float(amount) for key, amount in bundle.items()} for bundle in bundles],
    )


def remove_placement_group(placement_group: PlacementGroup) -> None:
    """Removes a group, without waiting for it.

    What runs in the group is killed, what waits for it fails, and its resources become available.
    Does nothing for a group that is removed already.
    """
    assert placement_group is not None, "remove_placement_group: a PlacementGroup is needed"
    if not placement_group.id.is_nil():
        _raylet.remove_group(placement_group.id.binary())


def get_placement_group(placement_group_name: str) -> PlacementGroup:
    """Finds a group of this namespace by its name. Raises ValueError when there is none."""
    if not placement_group_name:
        raise ValueError("Please supply a non-empty value to get_placement_group")
    if not isinstance(placement_group_name, (str, bytes)):
        raise TypeError(
            f"get_placement_group: the name is a string, got {type(placement_group_name).__name__}"
        )
    ensure_connected()
    info = _raylet.find_group(placement_group_name, current_namespace())
    if info is None:
        raise ValueError(f"Failed to look up placement group with name: {placement_group_name}")
    return PlacementGroup(PlacementGroupID(info["group_id"]), info["bundles"])


def get_current_placement_group() -> Optional[PlacementGroup]:
    """The group in which the running task or actor runs; None when there is none, as on drivers."""
    ensure_connected()
    group_id = _raylet.current_group()[0]
    return PlacementGroup(PlacementGroupID(group_id)) if group_id else None


def placement_group_table(placement_group: Optional[PlacementGroup] = None) -> Dict[str, Any]:
    """Describes a group: its state, bundles, nodes and times ({}: the cluster does not know it).

    Without an argument: the descriptions of all groups, removed ones included, by id in hex.
    """
    if placement_group is None:
        return {info["group_id"].hex(): _entry(info) for info in _raylet.list_groups()}
    info = None if placement_group.id.is_nil() else _raylet.group_info(placement_group.id.binary())
    return _entry(info) if info else {}


def validate_placement_group(
    bundles: List[Dict[str, float]],
    strategy: Optional[str] = None,
    lifetime: Optional[str] = None,
    _soft_target_node_id: Optional[str] = None,
    bundle_label_selector: Optional[List[Dict[str, str]]] = None,
    topology_strategy: Optional[Dict[str, str]] = None,
) -> None:
    """Raises ValueError if placement_group() would, for the same arguments."""
    group_arguments.validate(
        bundles,
        strategy,
        lifetime,
        _soft_target_node_id,
        bundle_label_selector,
        topology_strategy,
    )


def check_placement_group_index(placement_group: PlacementGroup, bundle_index: int) -> None:
    """Raises ValueError for a bundle that the group does not have; -1 stands for any bundle.

    TypeError: the index is no number. KeyError: the cluster does not know the group.
    """
    placement_group.check_index(bundle_index)


def _is_removed(info: Optional[Dict]) -> bool:
    return info is not None and info["state"] == _REMOVED


def _seconds(value: Any) -> float:
    if not isinstance(value, (int, float)):
        raise TypeError(
            f"timeout_seconds: a number of seconds is required, got {type(value).__name__}"
        )
    if math.isnan(value):
        raise ValueError("timeout_seconds: a number of seconds is required, got NaN")
    return float(value)


def _entry(info: Dict) -> Dict[str, Any]:
    return {
        "placement_group_id": info["group_id"].hex(),
        "name": info["name"],
        "bundles": dict(enumerate(info["bundles"])),
        "bundles_to_node_id": dict(enumerate(info["bundle_nodes"])),
        "strategy": group_arguments.STRATEGIES[info["strategy"]],
        "state": _STATES[info["state"]],
        "stats": {
            "end_to_end_creation_latency_ms": info["placed_us"] / 1000,
            "scheduling_latency_ms": info["scheduling_us"] / 1000,
            "scheduling_attempt": info["attempts"],
            "highest_retry_delay_ms": 0.0,
            "scheduling_state": _scheduling_state(info),
        },
    }


def _scheduling_state(info: Dict) -> str:
    state = _STATES[info["state"]]
    if state == "REMOVED":
        return "REMOVED"
    if state == "CREATED":
        return "FINISHED"
    if info["infeasible"]:
        return "INFEASIBLE"
    if info["why"]:
        return "NO_RESOURCES"
    return "SCHEDULING_STARTED" if info["attempts"] else "QUEUED"


def _inside(group: PlacementGroup) -> Any:
    return PlacementGroupSchedulingStrategy(group, placement_group_capture_child_tasks=False)


def _itself(group: PlacementGroup) -> PlacementGroup:
    return group


_ready_task: Any = None


def _ready_function() -> Any:
    """Returns the task of ready(), which needs nothing but a bundle of its group."""
    global _ready_task
    if _ready_task is None:
        definition = Definition(_itself)
        # Lists of tasks show this name.
        definition.name = "placement_group_ready"
        options = {"num_cpus": 0, "name": "PlacementGroup.ready"}
        _ready_task = RemoteFunction(_itself, options, definition)
    return _ready_task
