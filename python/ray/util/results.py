"""ray.util.as_completed and ray.util.map_unordered: results of many calls as they finish."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Sequence

import ray


def as_completed(
    refs: Sequence[ray.ObjectRef],
    *,
    chunk_size: int = 10,
    yield_obj_refs: bool = False,
    **kwargs: Any,
) -> Iterator[Any]:
    """Yields the values of `refs` (with yield_obj_refs: the refs) as they become ready.

    It waits for up to chunk_size refs at once: more means less overhead, fewer less delay. Further
    keywords go to ray.wait(). Raises what a task raised, and ValueError for chunk_size < 1 and for
    num_returns.
    """
    if chunk_size < 1:
        raise ValueError("`chunk_size` must be >= 1")
    if "num_returns" in kwargs:
        raise ValueError("Use the `chunk_size` argument instead of `num_returns`.")
    pending = list(refs)
    while pending:
        ready, pending = ray.wait(pending, num_returns=min(chunk_size, len(pending)), **kwargs)
        yield from ready if yield_obj_refs else ray.get(ready)


def map_unordered(
    fn: Any,
    items: Iterable[Any],
    *,
    backpressure_size: int | None = 100,
    chunk_size: int = 10,
    yield_obj_refs: bool = False,
    **kwargs: Any,
) -> Iterator[Any]:
    """Yields the results of fn.remote(item) over items, as they finish.

    fn is a remote function or an actor's method. At most backpressure_size calls (None: no limit)
    run or have results that were not taken; ValueError for backpressure_size <= 0. Other arguments
    are those of as_completed().
    """
    limit = float("inf") if backpressure_size is None else backpressure_size
    if limit <= 0:
        raise ValueError("backpressure_size must be positive.")
    if chunk_size < 1:
        raise ValueError("`chunk_size` must be >= 1")
    if "num_returns" in kwargs:
        raise ValueError("Use the `chunk_size` argument instead of `num_returns`.")
    chunk_size = int(min(chunk_size, limit))
    pending: list = []
    for item in items:
        pending.append(fn.remote(item))
        if len(pending) >= limit:
            ready, pending = ray.wait(pending, num_returns=chunk_size, **kwargs)
            while not ready:  # A timeout among the keywords must not break the limit.
                ready, pending = ray.wait(pending, num_returns=chunk_size, **kwargs)
            yield from ready if yield_obj_refs else ray.get(ready)
    yield from as_completed(pending, chunk_size=chunk_size, yield_obj_refs=yield_obj_refs, **kwargs)
