"""Values on another node that cannot be fetched, because the object store of this node is full."""

import gc

import pytest

import ray
from ray._private import internal_api
from ray.cluster_utils import Cluster
from shared_buffer import Buffer
from waiting import until

_MB = 1_000_000


@pytest.fixture(scope="module")
def two_nodes():
    """Two nodes; this process is connected to the first."""
    ray.shutdown()
    node = {"num_cpus": 2, "object_store_memory": 84 * _MB}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "resources": {"near": 100}})
    cluster.add_node(**node, resources={"far": 100})
    ray.init(address=cluster.address)
    yield cluster
    ray.shutdown(wait_for_processes=True)
    cluster.shutdown()


@ray.remote(resources={"far": 1}, max_retries=0)
def make(size):
    return Buffer(bytearray(size))


@ray.remote(num_cpus=1)
def size_of(buffer):
    return len(buffer)


class Borrower:
    """Reads values of others in a process of its own on the full node."""

    def fails_to_get(self, refs):
        with pytest.raises(ray.exceptions.ObjectStoreFullError):
            ray.get(refs[0])
        self.refs = refs

    def get(self):
        return len(ray.get(self.refs[0], timeout=60))


def fill():
    """Takes the room on this node as long as the result is kept."""
    return ray.get(ray.put(Buffer(bytearray(60 * _MB))))


def made_elsewhere():
    ref = make.remote(25 * _MB)
    assert ray.wait([ref], timeout=60, fetch_local=False)[0] == [ref]
    return ref


def assert_stores_are_empty():
    gc.collect()
    until(
        lambda: internal_api.memory_summary(stats_only=True),
        lambda text: "0 MiB, 0 objects" in text,
    )


def fails_to_get(ref):
    with pytest.raises(ray.exceptions.ObjectStoreFullError, match="cannot be read"):
        ray.get(ref)


def fails_to_get_in_time(ref):
    with pytest.raises(ray.exceptions.GetTimeoutError):
        ray.get(ref, timeout=0.5)


def fails_to_get_among_others(ref):
    with pytest.raises(ray.exceptions.ObjectStoreFullError):
        ray.get([ray.put(1), ref])


def waits(ref):
    assert ray.wait([ref], timeout=60) == ([ref], [])


def fails_as_argument(ref):
    with pytest.raises(ray.exceptions.ObjectStoreFullError):
        ray.get(size_of.options(resources={"near": 1}).remote(ref), timeout=60)


@pytest.mark.parametrize(
    "attempt",
    [
        fails_to_get,
        fails_to_get_in_time,
        fails_to_get_among_others,
        waits,
        fails_as_argument,
    ],
)
def test_a_value_that_found_no_room_is_read_when_there_is_room(two_nodes, attempt):
    assert_stores_are_empty()
    filling = fill()
    ref = made_elsewhere()
    attempt(ref)
    # The node that has the value can still use it.
    assert ray.get(size_of.options(resources={"far": 1}).remote(ref), timeout=60) == 25 * _MB
    del filling
    gc.collect()
    assert len(ray.get(ref, timeout=60)) == 25 * _MB
    near = size_of.options(resources={"near": 1})
    assert ray.get(near.remote(ref), timeout=60) == 25 * _MB
    del ref
    assert_stores_are_empty()


def test_a_borrower_reads_it_when_there_is_room(two_nodes):
    assert_stores_are_empty()
    filling = fill()
    ref = made_elsewhere()
    borrower = ray.remote(resources={"near": 1})(Borrower).remote()
    ray.get(borrower.fails_to_get.remote([ref]), timeout=60)
    del filling
    gc.collect()
    assert ray.get(borrower.get.remote(), timeout=60) == 25 * _MB
    del borrower, ref
    assert_stores_are_empty()


@pytest.mark.parametrize("attempt", [fails_to_get, waits])
def test_a_value_that_found_no_room_is_freed_with_its_last_reference(two_nodes, attempt):
    assert_stores_are_empty()
    filling = fill()
    attempt(made_elsewhere())
    del filling
    assert_stores_are_empty()


def waits_for_all(refs):
    assert ray.wait(refs, num_returns=len(refs), timeout=60) == (refs, [])


def fails_to_get_one_more(refs):
    never = ray.remote(resources={"nobody has this": 1})(lambda: None).remote()
    until(
        lambda: ray.wait(refs, num_returns=len(refs), timeout=0)[0],
        lambda ready: ready == refs,
    )
    with pytest.raises(ray.exceptions.GetTimeoutError):
        ray.get([*refs, never], timeout=0.2)
    ray.cancel(never)


@pytest.mark.parametrize("attempt", [waits_for_all, fails_to_get_one_more])
def test_what_nobody_reads_makes_room_for_others(two_nodes, attempt):
    assert_stores_are_empty()
    refs = [made_elsewhere() for _ in range(3)]
    attempt(refs)
    filling = fill()
    assert len(filling) == 60 * _MB
    del filling, refs
    assert_stores_are_empty()


def test_a_timeout_of_zero_reads_what_is_on_this_node(two_nodes):
    ref = ray.remote(resources={"near": 1})(lambda: Buffer(bytearray(_MB))).remote()
    assert ray.wait([ref], timeout=60, fetch_local=False)[0] == [ref]
    assert len(ray.get(ref, timeout=0)) == _MB
