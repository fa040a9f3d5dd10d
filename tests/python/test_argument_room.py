"""Tasks whose arguments nearly fill, or do not fit into, the object store of their node."""

import pytest

import ray
from ray.cluster_utils import Cluster
from ray.util.state import get_task, list_tasks
from shared_buffer import Buffer
from waiting import touch, until, wait_for

_MB = 1_000_000


@pytest.fixture(scope="module")
def two_nodes():
    """A small node, to which this process is connected, and a large one that makes arguments."""
    ray.shutdown()
    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 4,
            "resources": {"near": 100},
            "object_store_memory": 84 * _MB,
            # Two tests wait until there was no room for that long. Before, a second after the wait
            # began, the driver's log says so: on a busy machine this may come late.
            "_system_config": {"create_wait_ms": 7_000},
        },
    )
    cluster.add_node(num_cpus=4, resources={"far": 100}, object_store_memory=1000 * _MB)
    ray.init(address=cluster.address)
    yield cluster
    ray.shutdown(wait_for_processes=True)
    cluster.shutdown()


@ray.remote(resources={"far": 1})
def make(megabytes):
    return Buffer(bytearray(megabytes * _MB))


def size_of(*buffers):
    return sum(map(len, buffers))


total = ray.remote(resources={"near": 1})(size_of)


def made(*sizes):
    refs = [make.remote(size) for size in sizes]
    ray.wait(refs, num_returns=len(refs), fetch_local=False)
    return refs


def test_tasks_whose_arguments_fit_one_by_one(two_nodes):
    pairs = [made(30, 30) for _ in range(8)]
    assert ray.get([total.remote(*pair) for pair in pairs], timeout=120) == [60 * _MB] * 8


def test_arguments_that_never_fit_together(two_nodes):
    with pytest.raises(ray.exceptions.ObjectStoreFullError, match="can never be here together"):
        ray.get(total.remote(*made(30, 30, 30)), timeout=60)
    # The node is as usable as before.
    assert ray.get(total.remote(*made(30, 30)), timeout=60) == 60 * _MB


def test_a_waiting_task_can_be_cancelled(two_nodes, tmp_path):
    started, go = str(tmp_path / "started"), str(tmp_path / "go")

    @ray.remote(resources={"near": 1})
    def hold(buffer):
        touch(started)
        wait_for(go)
        return len(buffer)

    holding = hold.remote(*made(60))
    wait_for(started)
    waiting, last = total.remote(*made(50)), total.remote(*made(40))
    for task in (waiting, last):
        until(lambda: get_task(task.task_id().hex()).state, "PENDING_OBJ_STORE_MEM_AVAIL".__eq__)
    ray.cancel(waiting)
    with pytest.raises(ray.exceptions.TaskCancelledError):
        ray.get(waiting, timeout=60)
    touch(go)
    assert ray.get([holding, last], timeout=60) == [60 * _MB, 40 * _MB]


@ray.remote
def where(*buffers):
    return ray.get_runtime_context().get_node_id(), sum(map(len, buffers))


def node_with(resource):
    return next(node["NodeID"] for node in ray.nodes() if resource in node["Resources"])


def test_what_can_never_fit_here_runs_where_it_lies(two_nodes):
    assert ray.get(where.remote(*made(30, 30, 30)), timeout=60) == (node_with("far"), 90 * _MB)


def test_what_fits_here_once_runs_on_an_idle_node_that_has_it(two_nodes, tmp_path):
    """This node has no CPU free, and hears a moment late that the other node is idle again."""
    go = str(tmp_path / "go")
    pairs = [made(30, 30) for _ in range(8)]
    hold = ray.remote(resources={"near": 1})(lambda: wait_for(go))
    busy = [hold.remote() for _ in range(4)]
    until(lambda: ray.available_resources().get("near"), lambda near: near == 96)
    ran = ray.get([where.remote(*pair) for pair in pairs], timeout=120)
    assert ran == [(node_with("far"), 60 * _MB)] * 8
    touch(go)
    ray.get(busy, timeout=60)


def test_arguments_that_find_no_room_here_are_used_where_they_lie(two_nodes, tmp_path):
    """The task comes here because the node of its arguments is busy."""
    go = str(tmp_path / "go")
    filling = ray.get(ray.put(Buffer(bytearray(60 * _MB))))
    args = made(20, 20)
    hold = ray.remote(resources={"far": 1})(lambda: wait_for(go))
    busy = [hold.remote() for _ in range(4)]
    until(lambda: ray.available_resources().get("CPU"), lambda cpus: cpus == 4)
    task = where.options(max_retries=0).remote(*args)
    same = [("task_id", "=", task.task_id().hex())]
    until(
        lambda: [attempt.attempt_number for attempt in list_tasks(filters=same)],
        lambda attempts: 1 in attempts,
    )
    touch(go)
    assert ray.get(task, timeout=60) == (node_with("far"), 40 * _MB)
    ray.get(busy, timeout=60)
    del filling


def test_a_task_that_can_run_only_here_is_not_sent_to_its_arguments(two_nodes, capfd):
    ray.shutdown()
    # The driver's log goes to what `capfd` reads.
    ray.init(address=two_nodes.address)
    filling = ray.get(ray.put(Buffer(bytearray(60 * _MB))))
    task = total.options(max_retries=0).remote(*made(20, 20))
    with pytest.raises(ray.exceptions.ObjectStoreFullError, match="no room for the arguments"):
        ray.get(task, timeout=60)
    del filling, task
    ray.shutdown()
    said = "".join(capfd.readouterr())
    ray.init(address=two_nodes.address)
    assert "waits for room" in said and "the task goes to node" not in said


@ray.remote(num_cpus=0, resources={"near": 1})
class Parent:
    def total(self, refs, *buffers):
        """Gets the result of a child whose arguments need room beside those of this call."""
        return size_of(*buffers) + ray.get(total.remote(*refs))


def test_calls_that_wait_for_their_turn_leave_room_for_the_child_of_the_one_that_runs(two_nodes):
    """The arguments of all calls together would fill the store."""
    parent = Parent.remote()
    calls = [parent.total.remote(made(20, 20), *made(20)) for _ in range(4)]
    assert ray.get(calls, timeout=120) == [60 * _MB] * 4
