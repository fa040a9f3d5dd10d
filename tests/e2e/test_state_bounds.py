"""A process lists at most 10,000 of its tasks and objects, and an answer that lacks the others says
so."""

import pytest
from cluster import cluster

import ray

LISTED, MORE = 10_000, 50


@pytest.fixture(scope="module")
def crowded():
    with cluster(cpus=0) as c:
        c.refs = [ray.put(number) for number in range(LISTED + MORE)]
        c.never = ray.remote(num_cpus=1)(lambda: None)
        c.tasks = [c.never.remote() for _ in range(LISTED + MORE)]
        yield c


@pytest.mark.parametrize("command", ["list", "summary"])
@pytest.mark.parametrize("resource", ["objects", "tasks"])
def test_what_a_process_does_not_list_is_a_warning(crowded, command, resource):
    done = crowded.shell.run(command, resource, "--address", crowded.address)
    assert done.returncode == 0, done.stderr
    assert f"{resource} are not in this answer" in done.stderr, done.stderr[-1000:]


def test_memory_says_that_it_does_not_know_all_objects(crowded):
    done = crowded.shell.run("memory", "-n", "1", "--address", crowded.address)
    assert "objects are not in this answer" in done.stderr, done.stderr[-1000:]
