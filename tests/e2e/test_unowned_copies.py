"""No store keeps an object of which no owner knows, such as a copy for a task that was given back
meanwhile, or a copy whose owner could not be told of it."""

import os
import pathlib
import signal
import socket
import struct

import pytest
from census import Line
from cluster import cluster, stopped
from raw_rpc import parse
from waiting import touch, until, wait_for

import ray
from ray.experimental import get_object_locations
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from ray.util.state import list_tasks

SIZE = 10_000_000


@pytest.fixture(scope="module")
def two_nodes():
    with cluster(settings={"create_wait_ms": 600_000}, connect=False) as c:
        c.far = c.join(resources={"far": 100})
        ray.init(address=c.address, log_to_driver=False)
        c.await_nodes(2)
        yield c


def in_stores(c, field):
    """Returns one figure of each store; see StoreStats."""
    stores = [record["object_store_socket"] for record in c.records().values()]
    return [parse(Line(store).ask("ObjectStoreService.GetStats")).get(field, 0) for store in stores]


def objects(c):
    """Returns the number of objects in each store."""
    return in_stores(c, 3)


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


@ray.remote
class Owner:
    def pid(self):
        return os.getpid()

    def value(self):
        return [ray.put(bytes(SIZE))]


def test_a_copy_of_which_a_living_owner_cannot_be_told_is_dropped(two_nodes):
    assert ray.get(size_of.remote(b"a worker is there")) == 17
    here = NodeAffinitySchedulingStrategy(two_nodes.node_id(two_nodes.head_node), False)
    owner = Owner.options(scheduling_strategy=here).remote()
    pid = ray.get(owner.pid.remote())
    [value] = ray.get(owner.value.remote())
    assert ray.wait([value], fetch_local=False) == ([value], [])
    with stopped(pid):
        # The kernel accepts connections to the stopped owner, but nobody answers them.
        assert ray.get(size_of.remote(value), timeout=60) == SIZE
        until(lambda: objects(two_nodes), lambda found: sorted(found) == [0, 1])
    assert ray.get(value) == bytes(SIZE)
    del value
    until(lambda: objects(two_nodes), lambda found: not any(found))


@ray.remote(resources={"far": 1}, num_returns=2, max_retries=0)
def waits_for_room_for_the_second_result(path):
    pathlib.Path(path).write_text(str(os.getpid()))
    return bytes(SIZE), bytes(95_000_000)


def test_a_stored_result_of_a_process_that_died_before_its_reply_is_freed(two_nodes, tmp_path):
    """The store has 100 MB, so that the process waits for room while its first result is in the
    store."""
    first, second = waits_for_room_for_the_second_result.remote(str(tmp_path / "pid"))
    # Only complete objects have pins.
    until(lambda: in_stores(two_nodes, 4), lambda pinned: max(pinned) >= SIZE)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    for result in (first, second):
        with pytest.raises(ray.exceptions.WorkerCrashedError):
            ray.get(result, timeout=60)
    until(lambda: objects(two_nodes), lambda found: not any(found))


def segments_received():
    """Counts the TCP segments with data that this process has received over its open connections
    (tcpi_data_segs_in of struct tcp_info). A small write of the other side makes one segment."""
    total = 0
    for entry in pathlib.Path("/proc/self/fd").iterdir():
        try:
            with socket.socket(fileno=os.dup(int(entry.name))) as one:
                if one.family == socket.AF_INET and one.type == socket.SOCK_STREAM:
                    info = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
                    total += struct.unpack_from("I", info, 152)[0]
        except OSError:
            pass  # The descriptor is no socket, or was closed meanwhile.
    return total


@ray.remote(resources={"far": 1}, max_retries=0)
def waits_with(path, *values):
    wait_for(path)
    return len(values)


def test_the_owner_hears_of_copies_that_come_together_in_one_message(two_nodes, tmp_path):
    count, go = 200, str(tmp_path / "go")
    touch(go)
    # This opens the connection.
    assert ray.get(waits_with.remote(go, ray.put(bytes(200_000)))) == 1
    os.unlink(go)
    values = [ray.put(bytes(200_000)) for _ in range(count)]
    before = segments_received()
    task = waits_with.remote(go, *values)
    copies = lambda: sum(len(at["node_ids"]) for at in get_object_locations(values).values())
    until(copies, lambda found: found == 2 * count)
    received = segments_received() - before
    touch(go)
    assert ray.get(task) == count
    assert received < 6, f"{received} messages about {count} copies"
