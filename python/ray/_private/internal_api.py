"""The text of `ray memory`, and internals of Ray that programs call."""

from __future__ import annotations

from typing import Any, NoReturn

from ray import _raylet
from ray._private.absent import not_in_release
from ray.util.state.api import resolve_address


def global_gc() -> NoReturn:
    """Raises NotImplementedError: no daemon asks all workers. For this process: gc.collect()."""
    raise not_in_release("ray._private.internal_api.global_gc")


def free(object_refs: Any, local_only: bool = False) -> NoReturn:
    """Raises NotImplementedError: an object ends with its last reference, so `del` the refs."""
    raise not_in_release("ray._private.internal_api.free")


def memory_summary(  # Ray's signature
    address: str | None = None,
    redis_password: str | None = None,
    group_by: str = "NODE_ADDRESS",
    sort_by: str = "OBJECT_SIZE",
    units: str = "B",
    line_wrap: bool = True,
    stats_only: bool = False,
    num_entries: int | None = None,
) -> str:
    """Describes the references that processes hold, and the use of the object stores.

    group_by: NODE_ADDRESS or STACK_TRACE (the call site). units: B, KB, MB, GB (powers of 1000).
    num_entries: the most entries of each group. Raises ValueError for an unknown group, order or
    unit, ConnectionError when there is no cluster.
    """
    try:
        return _raylet.memory_text(
            resolve_address(address),
            group_by,
            sort_by,
            units,
            stats_only,
            -1 if num_entries is None else num_entries,
        )
    except ValueError:
        raise
    except Exception as error:
        raise ConnectionError(str(error)) from error
