"""Generators that need a cluster of their own: more data than fits goes through the object store,
and items are used after ray.shutdown()."""

import time

import numpy as np
import pytest

import ray
from waiting import touch, wait_for

# The bytes of an item. The store holds seven of them.
ITEM = 10_000_000


@pytest.fixture(autouse=True)
def small_store(no_cluster):
    # On a busy machine it may take long until others give up the room that a producer waits for.
    ray.init(
        num_cpus=2,
        object_store_memory=80_000_000,
        _system_config={"create_wait_ms": 60_000},
    )
    yield


@ray.remote
def items(n, made=None):
    for i in range(n):
        yield np.full(ITEM, i, dtype=np.uint8)
    if made:
        touch(made)


def test_taken_items():
    for i, ref in enumerate(items.options(_generator_backpressure_num_objects=3).remote(40)):
        assert ray.get(ref)[0] == i


def test_items_nobody_takes(tmp_path):
    kept = []
    for round in range(10):
        made = str(tmp_path / str(round))
        generator = items.remote(4, made)
        first = next(generator)
        if round == 0:
            kept.append(first)
        wait_for(made)
        del generator, first
    assert ray.get(kept[0])[0] == 0


def test_a_dropped_generator_that_goes_on(tmp_path):
    made = str(tmp_path / "made")
    next(items.remote(40, made))
    wait_for(made)
    assert ray.get(ray.put(np.ones(5 * ITEM, dtype=np.uint8)))[0] == 1


def test_items_of_a_cancelled_generator(tmp_path):
    for round in range(6):
        made = str(tmp_path / str(round))

        @ray.remote
        def f():
            for i in range(4):
                yield np.full(ITEM, i, dtype=np.uint8)
            touch(made)
            while True:
                time.sleep(0.01)

        generator = f.remote()
        wait_for(made)
        ray.cancel(generator)
        with pytest.raises(ray.exceptions.TaskCancelledError):
            ray.get(next(generator))


def test_dynamic_items():
    for _ in range(10):
        generator = ray.get(items.options(num_returns="dynamic").remote(4))
        assert [ray.get(ref)[0] for ref in generator] == [0, 1, 2, 3]


def test_a_generator_of_a_session_that_was_shut_down():
    generator = items.remote(1)
    ray.shutdown()
    with pytest.raises(RuntimeError, match="shut down"):
        next(generator)
    assert not ray.is_initialized()
