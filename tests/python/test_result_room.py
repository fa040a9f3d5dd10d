"""Results of tasks that wait for room in the object store of their node."""

import ray
from waiting import PATIENCE_S

_MB = 1_000_000


@ray.remote
def value(megabytes):
    return b"x" * (megabytes * _MB)


@ray.remote
def length(data):
    return len(data)


def test_makers_that_wait_let_the_readers_run_that_free_the_room():
    """Tasks that wait for room hold no CPU. More than three results never fit, and are never
    needed."""
    ray.shutdown()
    ray.init(num_cpus=2, object_store_memory=100 * _MB)
    try:
        lengths = [length.remote(value.remote(30)) for _ in range(12)]
        assert ray.get(lengths, timeout=PATIENCE_S) == [30 * _MB] * 12
    finally:
        ray.shutdown()
