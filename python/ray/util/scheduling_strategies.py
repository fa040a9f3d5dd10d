"""Values of `scheduling_strategy=` other than the names of policies, such as "SPREAD".

They are checked here and applied by the node-managers (tasks) and the head (actors).
"""

from __future__ import annotations

from typing import Any, Dict, Optional, Union

from ray._private.ids import NodeID


class PlacementGroupSchedulingStrategy:
    """Run in a bundle of a placement group (index -1: any).

    placement_group: a PlacementGroup; None: in no group, whatever the caller's captures;
        "default": in the group of the calling task, if that captures its children.
    placement_group_capture_child_tasks: whether the tasks and actors that it creates run in the
        group, too, unless they say where they run; None: as for the calling task.

    `.remote()` raises ValueError for a bundle that the group does not have, and for a request that
    fits in none of its bundles.
    """

    def __init__(
        self,
        placement_group: Any,
        placement_group_bundle_index: int = -1,
        placement_group_capture_child_tasks: Optional[bool] = None,
    ):
        self.placement_group = placement_group
        self.placement_group_bundle_index = placement_group_bundle_index
        self.placement_group_capture_child_tasks = placement_group_capture_child_tasks


class NodeAffinitySchedulingStrategy:
    """Run on one node; with `soft`, on another one when that node is gone.

    Raises ValueError for a malformed node id (hex), for `_spill_on_unavailable` without soft and
    for `_fail_on_unavailable` with it.
    """

    def __init__(
        self,
        node_id: Union[str, NodeID],
        soft: bool,
        _spill_on_unavailable: bool = False,
        _fail_on_unavailable: bool = False,
    ):
        text = node_id.hex() if isinstance(node_id, NodeID) else node_id
        try:
            if NodeID.from_hex(text).is_nil():
                raise ValueError
        except (TypeError, ValueError):
            raise ValueError(
                f"Invalid node_id '{text}'. Node ID must be a valid hex string. To get a list of "
                "all nodes and their IDs in your cluster, use ray.nodes()."
            ) from None
        if _spill_on_unavailable and not soft:
            raise ValueError(
                "_spill_on_unavailable cannot be set when soft is False. Please set soft to True "
                "to use _spill_on_unavailable."
            )
        if _fail_on_unavailable and soft:
            raise ValueError(
                "_fail_on_unavailable cannot be set when soft is True. Please set soft to False "
                "to use _fail_on_unavailable."
            )
        self.node_id = text
        self.soft = soft
        self._spill_on_unavailable = _spill_on_unavailable
        self._fail_on_unavailable = _fail_on_unavailable


class _OneOf:
    def __init__(self, *values: str):
        kind = type(self).__name__
        if not values:
            raise ValueError(
                f"The variadic parameter of the {kind} operator must be a non-empty tuple: e.g. "
                f'{kind}("value1", "value2").'
            )
        for position, value in enumerate(values):
            if not isinstance(value, str):
                raise ValueError(
                    f"Type of value in position {position} for the {kind} operator must be str "
                    f'(e.g. {kind}("value1", "value2")) '
                    f"but got {value!r} of type {type(value)}."
                )
        self.values = list(values)


class In(_OneOf):
    """The node's label has one of these values."""


class NotIn(_OneOf):
    """The node's label has none of these values."""


class Exists:
    """The node has the label."""


class DoesNotExist:
    """The node does not have the label."""


LabelMatchExpressionsT = Dict[str, Union[In, NotIn, Exists, DoesNotExist]]


class NodeLabelSchedulingStrategy:
    """Run where the labels match: `hard` must match, `soft` should.

    Raises ValueError unless they are dicts of labels to the operators above, and when both are
    empty.
    """

    def __init__(
        self,
        hard: Optional[LabelMatchExpressionsT],
        *,
        soft: Optional[LabelMatchExpressionsT] = None,
    ):
        _check_expressions(hard, "hard")
        _check_expressions(soft, "soft")
        if not hard and not soft:
            raise ValueError(
                "The `hard` and `soft` parameter of NodeLabelSchedulingStrategy cannot both be "
                "empty."
            )
        self.hard = dict(hard or {})
        self.soft = dict(soft or {})


def _check_expressions(expressions: Any, name: str) -> None:
    if expressions is None:
        return
    if not isinstance(expressions, dict):
        raise ValueError(
            f'The {name} parameter must be a map (e.g. {{"key1": In("value1")}}) but got type '
            f"{type(expressions)}."
        )
    for key, value in expressions.items():
        if not isinstance(key, str):
            raise ValueError(
                f'The map key of the {name} parameter must be of type str (e.g. {{"key1": '
                f'In("value1")}}) but got {key!r} of type {type(key)}.'
            )
        if not isinstance(value, (In, NotIn, Exists, DoesNotExist)):
            raise ValueError(
                f"The map value for key {key} of the {name} parameter must be one of the `In`, "
                "`NotIn`, `Exists` or `DoesNotExist` operator "
                f'(e.g. {{"key1": In("value1")}}) but got {value!r} of type {type(value)}.'
            )


SchedulingStrategyT = Union[
    None,
    str,
    PlacementGroupSchedulingStrategy,
    NodeAffinitySchedulingStrategy,
    NodeLabelSchedulingStrategy,
]
