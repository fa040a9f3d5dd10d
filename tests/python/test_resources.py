"""Resources that nobody uses count as free, even while an owner keeps their lease for its next
task."""

import time

import ray
from own_daemons import stopped_for
from waiting import touch, until, wait_for

# A node that is slower than this is not waited for; the head's last news of it, which may be old,
# count instead.
SLOW_S = 3


@ray.remote
def nothing():
    return None


def fresh_cpus():
    """Returns how many CPUs are free; None if the answer came so late that it may be an old one."""
    asked = time.monotonic()
    free = ray.available_resources().get("CPU", 0)
    return free if time.monotonic() - asked < SLOW_S else None


def test_available_resources_are_whole_when_no_task_runs(cluster):
    for _ in range(50):
        ray.get([nothing.remote() for _ in range(8)])
        free = until(fresh_cpus, lambda cpus: cpus is not None)
        assert free == ray.cluster_resources()["CPU"]


def test_a_node_that_is_busy_for_a_while_is_waited_for(cluster, tmp_path):
    gate = tmp_path / "gate"
    tasks = [ray.remote(wait_for).remote(gate) for _ in range(4)]
    until(lambda: ray.available_resources().get("CPU", 0) == 0)
    touch(gate)
    ray.get(tasks)
    # Longer than a driver waits before it looks for a signal.
    with stopped_for(0.5, "ray-node-manager"):
        free = until(fresh_cpus, lambda cpus: cpus is not None)
    assert free == 4
