"""Checks the arguments of ray.util.placement_group() and turns them into proto GroupSpec."""

from __future__ import annotations

import warnings
from typing import Any

from ray._private.amounts import check_number, cut_amounts
from ray._private.constraints import rules_of
from ray._private.ids import NodeID

# Their order is that of the numbers of GroupSpec.Strategy in common.proto.
STRATEGIES = ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")
_NODE_ID_LABEL = "ray.io/node-id"
_EXAMPLE = 'For example: `[{"CPU": 1.0}, {"GPU": 1.0}]`.'


def validate(
    bundles: Any,
    strategy: str | None = None,
    lifetime: str | None = None,
    soft_target_node_id: str | None = None,
    bundle_label_selector: Any = None,
    topology_strategy: Any = None,
) -> None:
    """Raises ValueError for arguments that no cluster can serve."""
    _check_topology(strategy, topology_strategy)
    node_strategy = _node_strategy(strategy, topology_strategy)
    if soft_target_node_id:
        if node_strategy != "STRICT_PACK":
            raise ValueError(
                "_soft_target_node_id currently only works with STRICT_PACK but got "
                f"{node_strategy}"
            )
        _node_id(soft_target_node_id)
    _check_bundles(bundles)
    if bundle_label_selector is not None:
        _check_selectors(bundle_label_selector, len(bundles))
    if node_strategy not in STRATEGIES:
        raise ValueError(
            f"Invalid placement group strategy {node_strategy}. Supported strategies are: "
            f"{list(STRATEGIES)}."
        )
    if lifetime not in (None, "detached"):
        raise ValueError(
            "Placement group `lifetime` argument must be either `None` or 'detached'. Got "
            f"{lifetime}."
        )


def spec_of(
    bundles: list[dict],
    strategy: str | None,
    soft_target_node_id: str | None,
    bundle_label_selector: list[dict] | None,
    topology_strategy: dict | None,
) -> dict:
    """The fields of GroupSpec that say what is asked for, from validated arguments."""
    selectors = bundle_label_selector or [None] * len(bundles)
    return {
        "strategy": STRATEGIES.index(_node_strategy(strategy, topology_strategy)),
        "bundles": [
            {
                "resources": cut_amounts(bundle),
                "selector": rules_of(selector) if selector else None,
            }
            for bundle, selector in zip(bundles, selectors)
        ],
        "soft_target_node_id": _node_id(soft_target_node_id) if soft_target_node_id else None,
        "topology_strategy": {
            label: value
            for label, value in (topology_strategy or {}).items()
            if label != _NODE_ID_LABEL
        },
    }


def _check_bundles(bundles: Any) -> None:
    if not isinstance(bundles, list):
        raise ValueError(f"Placement group bundles must be a list, got {type(bundles)}.")
    if not bundles:
        raise ValueError(
            f"Bundles must be a non-empty list of resource dictionaries. {_EXAMPLE} Got empty list "
            "instead."
        )
    for position, bundle in enumerate(bundles):
        if not isinstance(bundle, dict) or not all(
            isinstance(name, str) and isinstance(amount, (int, float))
            for name, amount in bundle.items()
        ):
            raise ValueError(
                f"Bundles must be a non-empty list of resource dictionaries. {_EXAMPLE}"
            )
        if not any(bundle.values()):
            raise ValueError(
                "Bundles cannot be an empty dictionary or resources with only 0 values. Bundles: "
                f"{bundles}"
            )
        for name, amount in bundle.items():
            if not name:
                raise ValueError(f"bundles[{position}]: names are non-empty strings, got ''")
            shown = "memory" if name == "memory" else f'bundles[{position}]["{name}"]'
            check_number(shown, amount, whole=name == "GPU")
        if bundle.get("object_store_memory"):
            warnings.warn(
                "object_store_memory in the bundle of a placement group is deprecated: it does not "
                "limit what is stored. Leave it out; objects that find no room are spilled.",
                DeprecationWarning,
                stacklevel=5,
            )


def _check_selectors(selectors: Any, bundles: int) -> None:
    # Ray calls an empty dict a list of the wrong length.
    if not isinstance(selectors, list) and selectors:
        raise ValueError(
            f"Placement group bundle_label_selector must be a list, got {type(selectors)}."
        )
    if len(selectors) != bundles:
        raise ValueError(
            f"Invalid bundle label selector {selectors}. The length of `bundle_label_selector` "
            "should equal the length of `bundles`."
        )
    for selector in selectors:
        if not isinstance(selector, dict) or not all(
            isinstance(text, str) for item in selector.items() for text in item
        ):
            raise ValueError(
                "Bundle label selector must be a list of string dictionary label selectors. For "
                'example: `[{"ray.io/market-type": "spot"}, {"ray.io/accelerator-type": "A100"}]`.'
            )
        try:
            rules_of(selector)
        except ValueError as error:
            raise ValueError(
                "Invalid label selector provided in bundle_label_selector list. Detailed error: "
                f"'{error}'"
            ) from None


def _check_topology(strategy: str | None, topology: Any) -> None:
    if topology is None:
        return
    if not isinstance(topology, dict):
        raise ValueError(f"`topology_strategy` must be a dict, got {type(topology).__name__}.")
    if not topology:
        return
    if strategy is not None:
        raise ValueError(
            "`strategy` and `topology_strategy` cannot both be specified. Pass node-level packing "
            f"via `topology_strategy['{_NODE_ID_LABEL}']`."
        )
    for label, value in topology.items():
        if not isinstance(label, str) or not label:
            raise ValueError(f"`topology_strategy` keys must be non-empty strings, got {label!r}.")
        if value not in STRATEGIES:
            raise ValueError(
                f"Invalid topology strategy {value!r} for label {label!r}. Supported strategies "
                f"are: {list(STRATEGIES)}."
            )
        if label != _NODE_ID_LABEL and value != "STRICT_PACK":
            raise ValueError(
                f"Topology strategy {value!r} for label {label!r} is not supported yet; only "
                f"'STRICT_PACK' is supported for topology labels other than `{_NODE_ID_LABEL}` for "
                "now."
            )
    others = sorted(label for label in topology if label != _NODE_ID_LABEL)
    if len(others) > 1:
        raise ValueError(
            "`topology_strategy` currently supports at most one topology label other than "
            f"`{_NODE_ID_LABEL}`. Got {others}."
        )


def _node_strategy(strategy: str | None, topology: dict | None) -> str:
    """The strategy that says how bundles are spread over nodes."""
    if topology:
        return topology.get(_NODE_ID_LABEL, "PACK")
    return "PACK" if strategy is None else strategy


def _node_id(text: Any) -> bytes:
    if not isinstance(text, str):
        raise TypeError(
            "_soft_target_node_id is the id of a node in hex, got an object of type "
            f"{type(text).__name__}"
        )
    try:
        return NodeID.from_hex(text).binary()
    except ValueError:
        raise ValueError(f"Invalid hex ID of _soft_target_node_id, got {text}") from None
