"""The options of tasks and actors that concern placement groups.

They are placement_group and its companions, which are deprecated, and scheduling_strategy with a
PlacementGroupSchedulingStrategy.
"""

from __future__ import annotations

from ray import _raylet
from ray._private.group_handle import GroupHandle
from ray._private.ids import PlacementGroupID
from ray._private.session import WORKER_MODE, global_worker
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

# The template says itself where it runs, so that it is not captured by the group of the calling
# task.
_OUTSIDE = {"placed_explicitly": True}


def check_option(options: dict):
    """Checks the option placement_group where it is given; it is not None."""
    group = options["placement_group"]
    if not isinstance(group, (str, GroupHandle)):
        raise TypeError(
            "The type of keyword 'placement_group' must be ['None', 'str', 'PlacementGroup'], but "
            f"received type {type(group).__name__}"
        )
    if group != "default" and options.get("scheduling_strategy") is not None:
        raise ValueError(
            "Placement groups should be specified via the scheduling_strategy option. The "
            "placement_group option is deprecated."
        )


def fields_of(options: dict, name: str, held: dict, placement: dict | None) -> dict:
    """See options.group_of().

    Raises ValueError for a bundle that the group does not have, and for a request that fits in
    none of its bundles, KeyError for a group that is not known, and AssertionError for what is no
    group.
    """
    if options.get("placement_group") is not None:
        # The options are checked once more, because .options() may have brought the two kinds
        # together.
        check_option(options)
    strategy = options.get("scheduling_strategy")
    if isinstance(strategy, PlacementGroupSchedulingStrategy):
        group = strategy.placement_group
        index = strategy.placement_group_bundle_index
        capture = strategy.placement_group_capture_child_tasks
    elif strategy is not None:
        return dict(_OUTSIDE)
    else:
        group = options.get("placement_group", "default")
        index = options.get("placement_group_bundle_index", -1)
        capture = options.get("placement_group_capture_child_tasks")
    if group == "default":
        return _in_group_of_caller(index, capture, (name, held, placement))
    assert group is None or isinstance(group, GroupHandle), (
        f"placement_group is a PlacementGroup, None or 'default', got {group!r}"
    )
    if group is None or group.is_empty:
        _check_no_index(index)
        return dict(_OUTSIDE)
    _check_fit(group, index, name, held, placement)
    in_worker = global_worker.mode == WORKER_MODE
    return {
        **_inside(group, index, _raylet.current_group()[2] if capture is None else capture),
        "only_once": in_worker and capture is None,
    }


def _inside(group: GroupHandle, index, captures) -> dict:
    return {
        "group_id": group.id.binary(),
        "bundle_index": int(index),
        "captures_children": bool(captures),
        "placed_explicitly": True,
    }


def _in_group_of_caller(index, capture, request: tuple) -> dict:
    current, _, captures = _raylet.current_group()
    joins = current is not None and (captures if capture is None else capture)
    if not joins:
        _check_no_index(index)
        return {} if capture is None else {**_OUTSIDE, "only_once": current is not None}
    group = _known_group(current)
    if group is not None:
        _check_fit(group, index, *request)
    if capture is None and index == -1:
        # The worker library adds the group of the caller to each call.
        return {}
    return {**_inside(GroupHandle(PlacementGroupID(current)), index, True), "only_once": True}


def _check_no_index(index):
    if index != -1:
        raise ValueError(
            "If placement group is not set, the value of bundle index must be -1, but "
            f"placement_group_bundle_index is {index}: give a placement group, too"
        )


# The groups in which tasks of this process created others, with their bundles. The dict is emptied
# when it has grown large.
_known: dict[bytes, GroupHandle | None] = {}
_MOST_KNOWN = 100


def _known_group(group_id: bytes) -> GroupHandle | None:
    """The group with its bundles; None when the head does not know it any more."""
    if group_id not in _known:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        group = GroupHandle(PlacementGroupID(group_id))
        try:
            _ = group.bundle_specs
        except KeyError:
            return None
        _known[group_id] = group
    return _known[group_id]


def _fits(request: dict, bundles: list[dict]) -> bool:
    return any(
        all(bundle.get(name, 0) >= amount for name, amount in request.items()) for bundle in bundles
    )


def _check_fit(group: GroupHandle, index, name: str, held: dict, placement: dict | None):
    """Checks that some bundle has room. placement: what an actor needs to be placed; None for a
    task."""
    if index == -1 and not held and not placement:
        # A request for nothing fits everywhere, so nobody is asked for the bundles.
        return
    group.check_index(index)
    bundles = group.bundle_specs
    if not _fits(held, bundles):
        raise ValueError(
            f"Cannot schedule {name} with the placement group because the resource request {held} "
            f"cannot fit into any bundles for the placement group, {bundles}."
        )
    if placement and not _fits(placement, bundles):
        raise ValueError(
            f"Cannot schedule {name} with the placement group because the actor requires "
            f"{placement.get('CPU', 0):g} CPU for creation, but it cannot fit into any bundles for "
            f"the placement group, {bundles}. Consider creating a placement group with CPU "
            "resources."
        )
