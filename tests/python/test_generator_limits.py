"""Generators with a limit, whose producers wait until their items are taken: dropped or repeated at
awkward moments."""

import os
import signal

import ray
from ray.util.state import list_tasks
from waiting import touch, until, wait_for


def test_a_generator_that_is_dropped_before_its_first_item_goes_on(no_cluster, tmp_path):
    ray.init(num_cpus=2)
    go, ended = str(tmp_path / "go"), str(tmp_path / "ended")

    @ray.remote(_generator_backpressure_num_objects=1)
    def numbers():
        wait_for(go)
        yield from range(50)
        touch(ended)

    generator = numbers.remote()
    del generator
    touch(go)
    until(lambda: os.path.exists(ended))


def test_a_repeated_generator_at_its_limit_hears_of_its_consumer(no_cluster, tmp_path):
    ray.init(num_cpus=2)

    @ray.remote(_generator_backpressure_num_objects=2, max_retries=1)
    def numbers():
        (tmp_path / f"pid{len(os.listdir(tmp_path))}").write_text(str(os.getpid()))
        yield from range(6)

    generator = numbers.remote()

    def awaits_consumer():
        return any("consumer" in (task.waits_for or "") for task in list_tasks(detail=True))

    until(awaits_consumer)
    # Both items that the limit allows have arrived, and none is taken.
    os.kill(int((tmp_path / "pid0").read_text()), signal.SIGKILL)
    until(lambda: os.path.exists(tmp_path / "pid1"))
    until(awaits_consumer)
    assert [ray.get(item) for item in generator] == list(range(6))
