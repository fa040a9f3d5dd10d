"""Tells where objects are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable

from ray import _raylet
from ray._private.session import global_worker

if TYPE_CHECKING:
    from ray import ObjectRef


def _locate(
    refs: Iterable[ObjectRef], ask_owners: bool, timeout_s: float
) -> dict[ObjectRef, dict[str, Any]]:
    refs = list(refs)
    if not global_worker.connected:
        raise RuntimeError("Ray hasn't been initialized.")
    found = _raylet.locate(refs, ask_owners, timeout_s)
    return {
        ref: {"node_ids": nodes, "object_size": size, "did_spill": False}
        for ref, (nodes, size) in zip(refs, found)
    }


def get_object_locations(
    obj_refs: Iterable[ObjectRef], timeout_ms: int = -1
) -> dict[ObjectRef, dict[str, Any]]:
    """Asks the owners where objects are stored.

    Returns {ref: {"node_ids": hex ids of the nodes that have the object in their stores,
    "object_size": bytes or None, "did_spill": bool}}. A small value lives in its owner's memory
    and so has no node. An object that does not exist yet has neither node nor size.

    timeout_ms: how long the owners may take to answer; -1 means no limit. Raises RuntimeError when
    not initialised, TypeError, and GetTimeoutError.
    """
    if isinstance(timeout_ms, bool) or not isinstance(timeout_ms, int):
        raise TypeError(f"timeout_ms must be an integer, got {timeout_ms!r}")
    return _locate(obj_refs, True, timeout_ms / 1000 if timeout_ms >= 0 else -1.0)


def get_local_object_locations(obj_refs: Iterable[ObjectRef]) -> dict[ObjectRef, dict[str, Any]]:
    """Like get_object_locations(), but only from what this process knows."""
    return _locate(obj_refs, False, -1.0)
