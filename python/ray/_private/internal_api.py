"""What `ray memory` shows, as text."""

from __future__ import annotations

from typing import Any, NoReturn


def global_gc() -> NoReturn:
    """Raises NotImplementedError: no daemon passes the wish on to all workers. gc.collect() is for this process."""
    from ray._private.options import not_in_release

    raise not_in_release("ray._private.internal_api.global_gc")


def free(object_refs: Any, local_only: bool = False) -> NoReturn:
    """Raises NotImplementedError: objects end with their last reference. `del` the refs."""
    from ray._private.options import not_in_release

    raise not_in_release("ray._private.internal_api.free")


def memory_summary(
    address: str | None = None,
    redis_password: str | None = None,
    group_by: str = "NODE_ADDRESS",
    sort_by: str = "OBJECT_SIZE",
    units: str = "B",
    line_wrap: bool = True,
    stats_only: bool = False,
    num_entries: int | None = None,
) -> str:
    """What processes refer to, by node address or call site, and the use of the object stores.

    units: B, KB, MB, GB (powers of 1000). num_entries: of each group, at most. ValueError: an unknown group, order or unit. ConnectionError: no cluster.
    """
    from ray import _raylet
    from ray.util.state.api import resolve_address

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
