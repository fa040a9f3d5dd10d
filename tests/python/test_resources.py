"""Resources that nobody uses count as free, even while an owner keeps their lease for its next
task."""

import ray


@ray.remote
def nothing():
    return None


def test_available_resources_are_whole_when_no_task_runs(cluster):
    for _ in range(50):
        ray.get([nothing.remote() for _ in range(8)])
        assert ray.available_resources().get("CPU") == ray.cluster_resources()["CPU"]
