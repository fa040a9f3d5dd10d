"""Nothing stays in a store that no owner knows of, such as a copy for a task that was given back
meanwhile."""

import pytest
from census import Line
from cluster import cluster, stopped
from raw_rpc import parse
from waiting import until

import ray
from ray.util.state import list_tasks

SIZE = 10_000_000


@pytest.fixture(scope="module")
def two_nodes():
    with cluster(connect=False) as c:
        c.far = c.join(resources={"far": 100})
        ray.init(address=c.address, log_to_driver=False)
        c.await_nodes(2)
        yield c


def objects(c):
    """How many there are in the stores."""
    stores = [record["object_store_socket"] for record in c.records().values()]
    return [parse(Line(store).ask("ObjectStoreService.GetStats")).get(3, 0) for store in stores]


@ray.remote(resources={"far": 1}, max_retries=0)
def size_of(value):
    return len(value)


def test_a_copy_that_arrives_for_a_cancelled_task_is_freed_with_its_object(two_nodes):
    assert ray.get(size_of.remote(b"a worker is there")) == 17
    value = ray.put(bytes(SIZE))
    with stopped(two_nodes.pid(two_nodes.head_node, "ray-object-store")):
        task = size_of.remote(value)
        until(lambda: [t.state for t in list_tasks()], lambda s: "PENDING_ARGS_FETCH" in s)
        ray.cancel(task)
        with pytest.raises(ray.exceptions.TaskCancelledError):
            ray.get(task, timeout=60)
    until(lambda: objects(two_nodes), lambda found: sorted(found) == [1, 1])
    del value
    until(lambda: objects(two_nodes), lambda found: not any(found))
