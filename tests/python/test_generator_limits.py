"""Generators with a limit, whose producers wait until their items are taken, when they are dropped
or repeated."""

import os
import signal

import pytest

import ray
from ray.util.state import list_tasks
from waiting import touch, until, wait_for


@pytest.fixture(autouse=True)
def two_cpus(no_cluster):
    ray.init(num_cpus=2)


def awaits_consumer():
    """Whether a task of the cluster waits until its items are taken."""
    return any("consumer" in (task.waits_for or "") for task in list_tasks(detail=True))


@pytest.mark.parametrize("has_item", [False, True])
def test_the_producer_of_a_dropped_generator_goes_on(tmp_path, has_item):
    go, ended = tmp_path / "go", tmp_path / "ended"

    @ray.remote(_generator_backpressure_num_objects=1)
    def numbers():
        wait_for(go)
        yield from range(50)
        touch(ended)

    generator = numbers.remote()
    if has_item:
        touch(go)
        until(awaits_consumer)
    del generator
    touch(go)
    until(ended.exists)


def test_a_limit_outlives_a_worker(tmp_path):
    first = tmp_path / "first"

    @ray.remote(_generator_backpressure_num_objects=2, max_retries=1)
    def numbers():
        for i in range(6):
            if i == 3 and not first.exists():
                touch(first)
                os._exit(1)
            yield i

    assert [ray.get(item) for item in numbers.remote()] == list(range(6))


def test_a_repeated_generator_at_its_limit_hears_of_its_consumer(tmp_path):
    @ray.remote(_generator_backpressure_num_objects=2, max_retries=1)
    def numbers():
        (tmp_path / f"pid{len(os.listdir(tmp_path))}").write_text(str(os.getpid()))
        yield from range(6)

    generator = numbers.remote()
    until(awaits_consumer)
    # Both items that the limit allows have arrived, and none is taken.
    os.kill(int((tmp_path / "pid0").read_text()), signal.SIGKILL)
    until((tmp_path / "pid1").exists)
    until(awaits_consumer)
    assert [ray.get(item) for item in generator] == list(range(6))
