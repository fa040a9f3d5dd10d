"""A program as users write it, which `mypy --strict` must accept (tests/python/test_typing.py).

The test also runs it, so that the types it relies on are those of the values.
"""

from __future__ import annotations

import asyncio
from typing import Iterator, List

import ray
from ray import ObjectRef
from ray.actor import ActorHandle, ActorProxy
from ray.exceptions import GetTimeoutError, RayTaskError
from ray.util import ActorPool
from ray.util.placement_group import PlacementGroup, placement_group
from ray.util.queue import Empty, Queue
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


@ray.remote
def add(x: int, y: int = 2) -> int:
    return x + y


@ray.remote(num_cpus=0.5, max_retries=1)
def name_of(value: int) -> str:
    return str(value)


@ray.remote(num_returns=2)
def halves(value: int) -> tuple[int, int]:
    return value // 2, value - value // 2


@ray.remote
def count(n: int) -> Iterator[int]:
    yield from range(n)


class Counter:
    def __init__(self, start: int = 0) -> None:
        self.n = start

    def add(self, x: int) -> int:
        self.n += x
        return self.n

    @ray.method
    def total(self, scale: int, label: str = "") -> str:
        return f"{label}{self.n * scale}"

    async def later(self) -> int:
        await asyncio.sleep(0)
        return self.n


# Type checkers ignore the result of a class decorator, so typed programs give the actor class a
# name of its own.
CounterActor = ray.remote(Counter)
Sized = ray.remote(num_cpus=0)(Counter)


def use(counter: ActorProxy[Counter]) -> str:
    return ray.get(counter.total.remote(2, label="n="))


def tasks() -> None:
    ref: ObjectRef[int] = add.remote(1)
    value: int = ray.get(ref)
    by_reference: int = ray.get(add.remote(ref, 3))
    by_keyword: int = ray.get(add.remote(1, y=3))
    values: List[int] = ray.get([add.remote(i) for i in range(3)], timeout=10)
    text: str = ray.get(name_of.remote(add.remote(1)))
    low, high = halves.remote(5)
    assert (
        value == 3 and by_reference == 6 and by_keyword == 4 and values == [2, 3, 4] and text == "3"
    )
    assert ray.get(low) + ray.get(high) == 5
    ready, rest = ray.wait([ref, add.remote(2)], num_returns=2, timeout=5.0)
    assert len(ready) == 2 and not rest and ray.get(ready[0]) + 0 == 3
    kept: ObjectRef[dict[str, int]] = ray.put({"a": 1})
    assert ray.get(kept)["a"] == 1
    assert ray.get(add.options(num_cpus=1, name="named").remote(4)).bit_length() == 3
    assert add.remote(1).future().result(10) + 1 == 4
    assert [ray.get(item) + 1 for item in count.remote(3)] == [1, 2, 3]
    try:
        ray.get(ref, timeout=0)
    except (GetTimeoutError, RayTaskError) as error:
        print(error)


async def awaiting() -> int:
    first = await add.remote(1)
    second, third = await asyncio.gather(add.remote(first), name_of.remote(2))
    return second + len(third)


def actors() -> None:
    counter: ActorHandle[Counter] = CounterActor.options(name="counter").remote(5)
    total: int = ray.get(counter.add.remote(2))
    also: int = ray.get(ray.get_actor("counter").add.options(num_returns=1).remote(1))
    assert total == 7 and also == 8 and use(counter) == "n=16"
    pool = ActorPool([Sized.remote() for _ in range(2)])
    assert sorted(pool.map(lambda actor, value: actor.add.remote(value), [1, 1])) == [1, 1]
    queue = Queue(maxsize=3)
    queue.put(1)
    assert queue.get(timeout=5) == 1
    try:
        queue.get_nowait()
    except Empty:
        pass
    ray.kill(counter)


def groups() -> None:
    group: PlacementGroup = placement_group([{"CPU": 1}], strategy="SPREAD")
    there: bool = group.wait(timeout_seconds=30)
    same: PlacementGroup = ray.get(group.ready())
    assert there and same == group and group.bundle_specs == [{"CPU": 1.0}]
    inside = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=0)
    CounterActor.options(scheduling_strategy=inside).remote(5)
    assert ray.util.get_current_placement_group() is None
    ray.util.remove_placement_group(group)


def main() -> None:
    with ray.init(num_cpus=4, namespace="types") as context:
        assert context.address_info["node_id"] == ray.get_runtime_context().get_node_id()
        tasks()
        assert asyncio.run(awaiting()) == 6
        actors()
        groups()
        assert ray.cluster_resources()["CPU"] == 4.0 and ray.nodes()[0]["Alive"]


if __name__ == "__main__":
    main()
