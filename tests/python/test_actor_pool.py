"""ray.util.ActorPool hands work to its actors in order and keeps no result that nobody takes."""

import threading

import pytest

import ray
from ray.util import ActorPool

pytestmark = pytest.mark.usefixtures("cluster")


@ray.remote(num_cpus=0, max_concurrency=2)
class Worker:
    def __init__(self):
        self.gate = threading.Event()

    def double(self, value):
        return 2 * value

    def wait(self, value):
        self.gate.wait()
        return value

    def open(self):
        self.gate.set()

    def fail(self, value):
        raise KeyError(value)


def double(actor, value):
    return actor.double.remote(value)


def wait(actor, value):
    return actor.wait.remote(value)


@pytest.fixture(scope="module")
def actors():
    return [Worker.remote() for _ in range(2)]


def test_map_keeps_the_order(actors):
    results = ActorPool(actors).map(double, range(20))
    assert iter(results) is results
    assert list(results) == [2 * i for i in range(20)]


def test_map_unordered(actors):
    assert sorted(ActorPool(actors).map_unordered(double, range(20))) == [2 * i for i in range(20)]


def test_map_submits_before_anything_is_taken():
    actor = Worker.remote()
    results = ActorPool([actor]).map(wait, [1])
    actor.open.remote()
    assert list(results) == [1]


def test_nothing_to_get(actors):
    pool = ActorPool(actors)
    assert not pool.has_next() and pool.has_free()
    for take in (pool.get_next, pool.get_next_unordered):
        with pytest.raises(StopIteration):
            take()


def test_more_work_than_actors(actors):
    pool = ActorPool(actors)
    for i in range(5):
        pool.submit(double, i)
    assert pool.has_next() and not pool.has_free() and pool.pop_idle() is None
    assert [pool.get_next() for _ in range(5)] == [0, 2, 4, 6, 8]
    assert not pool.has_next() and pool.has_free()


def test_timeouts_leave_the_work():
    actor = Worker.remote()
    pool = ActorPool([actor])
    pool.submit(wait, 7)
    for take in (pool.get_next, pool.get_next_unordered):
        with pytest.raises(TimeoutError):
            take(timeout=0.02)
    with pytest.raises(TimeoutError):
        pool.get_next_unordered(timeout=0, ignore_if_timedout=True)
    assert pool.has_next()
    actor.open.remote()
    assert pool.get_next() == 7


def test_an_ignored_result_is_given_up_and_its_actor_works_on():
    actor = Worker.remote()
    pool = ActorPool([actor])
    pool.submit(wait, 1)
    pool.submit(double, 2)
    with pytest.raises(TimeoutError, match="has been ignored"):
        pool.get_next(timeout=0.02, ignore_if_timedout=True)
    assert pool.get_next() == 4
    assert not pool.has_next()
    actor.open.remote()


def test_ordered_after_unordered_that_overtook_only_when_drained(actors):
    gates = [Worker.options(max_concurrency=2).remote() for _ in range(2)]
    pool = ActorPool(gates)
    pool.submit(wait, 1)
    pool.submit(double, 2)
    assert pool.get_next_unordered() == 4
    with pytest.raises(ValueError):
        pool.get_next()
    ray.get([gate.open.remote() for gate in gates])
    assert pool.get_next_unordered() == 1
    pool.submit(double, 3)
    assert pool.get_next() == 6


def test_ordered_after_unordered_in_order(actors):
    pool = ActorPool(actors[:1])
    pool.submit(double, 1)
    pool.submit(double, 2)
    assert pool.get_next_unordered() == 2 and pool.get_next() == 4


def test_errors_come_out_and_the_pool_goes_on(actors):
    pool = ActorPool(actors)
    pool.submit(lambda actor, value: actor.fail.remote(value), 1)
    with pytest.raises(KeyError):
        pool.get_next()
    assert list(pool.map(double, [1])) == [2]


def test_map_gives_up_what_was_left(actors):
    pool = ActorPool(actors)
    pool.submit(lambda actor, value: actor.fail.remote(value), 1)
    pool.submit(double, 2)
    pool.submit(double, 3)
    assert list(pool.map(double, [4, 5])) == [8, 10]
    pool.submit(double, 6)
    pool.submit(double, 7)
    pool.get_next_unordered()
    assert sorted(pool.map_unordered(double, [8])) == [16]


def test_actors_come_and_go(actors):
    pool = ActorPool(actors[:1])
    with pytest.raises(ValueError):
        pool.push(actors[0])
    taken = pool.pop_idle()
    assert taken == actors[0] and pool.pop_idle() is None and not pool.has_free()
    pool.submit(double, 1)
    assert not pool.has_next()
    pool.push(taken)
    assert pool.get_next() == 2
    pool.push(actors[1])
    assert list(pool.map(double, range(4))) == [0, 2, 4, 6]


def test_no_actors():
    pool = ActorPool([])
    assert not pool.has_free() and not pool.has_next() and pool.pop_idle() is None
