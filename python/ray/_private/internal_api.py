"""What `ray memory` shows, as text."""
from __future__ import annotations

import json
from typing import Any, NoReturn

_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}
_KINDS = {"LOCAL_REFERENCE": "Local References", "PINNED_IN_MEMORY": "Pinned", "USED_BY_PENDING_TASK": "Used by task",
          "CAPTURED_IN_OBJECT": "Captured in Objects", "ACTOR_HANDLE": "Actor Handles"}
_COLUMNS = ("IP Address", "PID", "Type", "Call Site", "Status", "Attempt", "Size", "Reference Type", "Object Ref")
_GROUPS = {"NODE_ADDRESS": "ip", "STACK_TRACE": "call_site"}
_SORTS = {"OBJECT_SIZE": lambda entry: entry.object_size, "PID": lambda entry: entry.pid, "REFERENCE_TYPE": lambda entry: entry.reference_type}


def global_gc() -> NoReturn:
    """Raises NotImplementedError: no daemon passes the wish on to all workers. gc.collect() is for this process."""
    from ray._private.options import not_in_release
    raise not_in_release("ray._private.internal_api.global_gc")


def free(object_refs: Any, local_only: bool = False) -> NoReturn:
    """Raises NotImplementedError: objects end with their last reference. `del` the refs."""
    from ray._private.options import not_in_release
    raise not_in_release("ray._private.internal_api.free")


def _size(bytes_: int, units: str) -> str:
    return "?" if bytes_ < 0 else f"{bytes_ / _UNITS[units]} {units}"


def _group_text(key: str, group_by: str, entries: list[Any], units: str) -> str:
    known = [entry for entry in entries if entry.object_size > 0]
    cells = [_size(sum(entry.object_size for entry in known), units)]
    for kind in _KINDS:
        of_kind = [entry for entry in entries if entry.reference_type == kind]
        cells.append(f"{len(of_kind)}, ({_size(sum(max(0, entry.object_size) for entry in of_kind), units)})")
    word = group_by.replace("_", " ").lower()
    lines = [f"--- Summary for {word}: {key} ---", "".join(f"{title:<21}" for title in ("Mem Used by Objects", *_KINDS.values())).rstrip(),
             "".join(f"{cell:<21}" for cell in cells).rstrip(), "", f"--- Object references for {word}: {key} ---", " | ".join(_COLUMNS), ""]
    for entry in entries:
        status = "-" if entry.task_status == "NIL" else entry.task_status
        lines.append(" | ".join(map(str, (entry.ip, entry.pid, entry.type.capitalize(), entry.call_site, status, entry.attempt_number, _size(entry.object_size, units),
                                          entry.reference_type, entry.object_id))))
    return "\n".join(lines) + "\n"


def _store_text(address: str, objects: list[Any]) -> str:
    from ray import _raylet
    stores = json.loads(_raylet.store_stats(address, 30.0))
    used, capacity, count = (sum(store[key] for store in stores) for key in ("used", "capacity", "objects"))
    full = round(100 * used / capacity, 2) if capacity else 0.0
    return ("--- Aggregate object store stats across all nodes ---\n"
            f"Plasma memory usage {used // 2**20} MiB, {count} objects, {full}% full, {full}% needed\n")


def memory_summary(address: str | None = None, redis_password: str | None = None, group_by: str = "NODE_ADDRESS", sort_by: str = "OBJECT_SIZE", units: str = "B",
                   line_wrap: bool = True, stats_only: bool = False, num_entries: int | None = None) -> str:
    """What processes refer to, by node address or call site, and the use of the object stores.

    units: B, KB, MB, GB (powers of 1000). num_entries: of each group, at most. ValueError: an unknown group, order or unit. ConnectionError: no cluster.
    """
    from ray.util.state import list_objects
    from ray.util.state.api import resolve_address
    from ray.util.state.exception import ServerUnavailable
    for value, known in ((group_by, _GROUPS), (sort_by, _SORTS), (units, _UNITS)):
        if value not in known:
            raise ValueError(f"{value!r} is not one of {', '.join(known)}")
    try:
        where = resolve_address(address)
        objects = [] if stats_only else list_objects(where, limit=10_000, raise_on_missing_output=False)
    except ServerUnavailable as error:
        raise ConnectionError(str(error)) from error
    text = ""
    if not stats_only:
        groups: dict[str, list[Any]] = {}
        for entry in sorted(objects, key=_SORTS[sort_by]):
            groups.setdefault(getattr(entry, _GROUPS[group_by]), []).append(entry)
        shown = "all" if num_entries is None else str(num_entries)
        text = (f"Grouping by {group_by.replace('_', ' ').lower()}...        Sorting by {sort_by.replace('_', ' ').lower()}...        "
                f"Display {shown} entries per group...\n\n\n")
        text += "\n".join(_group_text(key, group_by, entries[:num_entries], units) for key, entries in sorted(groups.items()))
        text += "\nTo record callsite information for each ObjectRef created, set env variable RAY_record_ref_creation_sites=1\n\n"
    return text + _store_text(where, objects)
