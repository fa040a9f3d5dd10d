"""ray.util.multiprocessing.Pool behaves like Python's Pool, with actors in place of processes."""

import itertools
import multiprocessing
import os
import threading

import pytest

import ray
from ray.exceptions import ActorDiedError
from ray.util.multiprocessing import Pool, TimeoutError
from waiting import PATIENCE_S, touch, until, wait_for

pytestmark = pytest.mark.usefixtures("cluster")


def square(x):
    return x * x


def add(x, y=3):
    return x + y


def fail(x):
    raise KeyError(x)


def fail_odd(x):
    if x % 2:
        raise ValueError(x)
    return x


def after(path):
    """Returns the path when the file is there."""
    wait_for(path)
    return path


def process_id(_=None):
    return os.getpid()


class Unpicklable(Exception):
    def __init__(self):
        super().__init__("held")
        self.lock = threading.Lock()


@pytest.fixture(scope="module")
def pool(cluster):
    with Pool(2) as shared:
        yield shared


def test_apply(pool):
    assert (
        pool.apply(add, (1,)) == 4
        and pool.apply(add, (1,), {"y": 5}) == 6
        and pool.apply(process_id) != os.getpid()
    )
    assert pool.apply(lambda: 7) == 7
    with pytest.raises(TypeError):
        pool.apply(square, (), {"z": 1})


def test_map_keeps_the_order(pool):
    assert pool.map(square, range(50)) == [x * x for x in range(50)]
    assert pool.map(square, (x for x in range(5)), chunksize=2) == [0, 1, 4, 9, 16]
    assert pool.map(square, []) == []
    offset = 3
    assert pool.map(lambda x: x + offset, range(20)) == list(range(3, 23))
    with pytest.raises(TypeError):
        pool.map(square, 3)
    for chunksize in (0, -1):
        with pytest.raises(ValueError):
            pool.map(square, [1], chunksize=chunksize)


def test_starmap(pool):
    assert pool.starmap(add, [(1, 2), (3,)]) == [3, 6]
    got = []
    result = pool.starmap_async(add, [(1, 2)], got.append)
    result.wait()
    assert got == [[3]] and pool.starmap_async(add, [(1, 2)], callback=got.append).get() == [3]
    with pytest.raises(TypeError):
        pool.starmap(add, [1])


def test_work_is_spread(pool):
    assert len(set(pool.map(process_id, range(8), chunksize=1))) == 2


def test_errors_are_the_calls_own(pool):
    with pytest.raises(KeyError) as caught:
        pool.apply(fail, (1,))
    # The traceback is that of the process in the pool.
    assert "in fail" in str(caught.value.__cause__)
    with pytest.raises(KeyError):
        pool.map(fail, [1, 2])
    with pytest.raises(RuntimeError, match="Unpicklable"):
        pool.apply(raise_unpicklable)


def raise_unpicklable():
    raise Unpicklable


def test_async_results(pool, tmp_path):
    gate = tmp_path / "gate"
    result = pool.apply_async(after, (gate,))
    assert not result.ready()
    with pytest.raises(ValueError, match="not ready"):
        result.successful()
    with pytest.raises(multiprocessing.TimeoutError):
        result.get(timeout=0.01)
    result.wait(timeout=0.01)
    touch(gate)
    assert (
        result.get() == gate
        and result.ready()
        and result.successful()
        and result.get(timeout=0) == gate
    )
    failed = pool.map_async(fail, [1, 2])
    failed.wait()
    assert failed.ready() and not failed.successful()
    for _ in range(2):
        with pytest.raises(KeyError):
            failed.get()
    empty = pool.map_async(square, [])
    assert empty.ready() and empty.successful() and empty.get() == []


def test_callbacks(pool):
    good, bad = [], []
    pool.apply_async(square, (3,), callback=good.append, error_callback=bad.append).wait()
    pool.map_async(square, range(5), callback=good.append).wait()
    pool.map_async(square, [], callback=good.append).wait()
    assert good == [9, [0, 1, 4, 9, 16], []] and bad == []
    pool.map_async(fail, [1, 2], callback=good.append, error_callback=bad.append).wait()
    assert len(good) == 3 and [type(error) for error in bad] == [KeyError]


def test_imap(pool):
    results = pool.imap(square, range(30))
    assert iter(results) is results and list(results) == [x * x for x in range(30)]
    assert list(pool.imap(square, range(5), chunksize=2)) == [0, 1, 4, 9, 16]
    assert list(pool.imap(square, range(5), chunksize=None)) == [0, 1, 4, 9, 16]
    assert list(pool.imap(square, [])) == []
    with pytest.raises(ValueError):
        pool.imap(square, [1], chunksize=0)


def test_imap_unordered(pool, tmp_path):
    assert sorted(pool.imap_unordered(square, range(30), chunksize=4)) == [x * x for x in range(30)]
    late, there = tmp_path / "late", tmp_path / "there"
    touch(there)
    results = pool.imap_unordered(after, [late, there])
    assert results.next(timeout=PATIENCE_S) == there
    touch(late)
    assert next(iter(results)) == late


def test_imap_reads_as_results_are_taken(pool):
    results = pool.imap(square, itertools.count())
    assert [next(results) for _ in range(100)] == [x * x for x in range(100)]


@pytest.mark.parametrize("method", ["imap", "imap_unordered"])
def test_imap_timeouts(pool, tmp_path, method):
    gate = tmp_path / "gate"
    results = getattr(pool, method)(after, [gate])
    with pytest.raises(TimeoutError):
        results.next(timeout=0.01)
    touch(gate)
    assert results.next() == gate
    with pytest.raises(StopIteration):
        results.next()


def test_imap_goes_on_after_errors(pool):
    results = pool.imap(fail_odd, range(4), chunksize=2)
    got = []
    while True:
        try:
            got.append(next(results))
        except ValueError as error:
            got.append(error.args[0] * 10)
        except StopIteration:
            break
    assert got == [0, 10, 2, 30]


def test_imap_of_an_iterable_that_fails(pool):
    def items():
        yield from range(3)
        raise LookupError("no more")

    results = pool.imap(square, items())
    assert [next(results) for _ in range(3)] == [0, 1, 4]
    with pytest.raises(LookupError):
        next(results)
    with pytest.raises(StopIteration):
        next(results)


def test_initializer():
    def set_up(a, b):
        os.environ["POOL_TEST"] = a + b

    with Pool(2, initializer=set_up, initargs=("x", "y")) as mine:
        assert mine.map(lambda _: os.environ["POOL_TEST"], range(4)) == ["xy"] * 4
    for wrong in (fail, 3):
        with pytest.raises(ActorDiedError, match="KeyError|not callable"):
            Pool(1, initializer=wrong, initargs=(1,))


def test_maxtasksperchild():
    with Pool(1, maxtasksperchild=2) as mine:
        ids = mine.map(process_id, range(6), chunksize=1)
        assert ids[0] == ids[1] != ids[2] == ids[3] != ids[4] == ids[5]
        assert len({mine.apply(process_id) for _ in range(4)}) == 2
        mine.close()
        mine.join()
    with pytest.raises(ValueError):
        Pool(1, maxtasksperchild=-1)


def test_number_of_processes():
    with Pool() as mine:
        assert len(set(mine.map(process_id, range(40), chunksize=1))) == 4
    for wrong in (0, -1, 5):
        with pytest.raises(ValueError):
            Pool(wrong)


def test_takes_no_cpu_by_default():
    with Pool(4, context="not used") as mine:
        mine.map(square, range(4))
        assert ray.get(ray.remote(num_cpus=4)(square).remote(2)) == 4
    with Pool(1, ray_remote_args={"num_cpus": 1, "resources": {"thing": 1}}) as mine:
        mine.apply(square, (1,))
        # A node that is slow to answer counts with what the head heard of it before.
        until(lambda: ray.available_resources().get("thing"), lambda free: free == 1)


def test_close_and_join(tmp_path):
    gate = tmp_path / "gate"
    mine = Pool(2)
    assert mine.apply(square, (2,)) == 4
    with pytest.raises(ValueError, match="still running"):
        mine.join()
    late = mine.map_async(after, [gate, gate])
    rest = mine.imap(square, range(50))
    mine.close()
    mine.close()
    for call in (
        mine.map,
        mine.map_async,
        mine.imap,
        mine.imap_unordered,
        mine.starmap,
        mine.starmap_async,
        mine.apply,
        mine.apply_async,
    ):
        with pytest.raises(ValueError, match="not running"):
            call(square, [1])
    touch(gate)
    mine.join()
    mine.join()
    assert late.get(timeout=0) == [gate, gate] and list(rest) == [x * x for x in range(50)]
    with pytest.raises(ValueError):
        mine.__enter__()


def test_terminate(tmp_path):
    mine = Pool(1)
    result = mine.apply_async(after, (tmp_path / "never",))
    mine.terminate()
    mine.terminate()
    mine.join()
    with pytest.raises(ActorDiedError):
        result.get()
    with pytest.raises(ValueError, match="not running"):
        mine.map(square, [1])


def test_with_terminates():
    with Pool(1) as mine:
        pass
    with pytest.raises(ValueError):
        mine.apply(square, (1,))


def test_inside_a_task():
    def nested():
        with Pool(2) as mine:
            return mine.map(square, range(3))

    assert ray.get(ray.remote(num_cpus=0)(nested).remote()) == [0, 1, 4]


def test_a_process_that_dies_fails_its_calls_and_is_replaced():
    with Pool(1) as mine:
        for die in (
            lambda: mine.apply(os._exit, (3,)),
            lambda: mine.map(os._exit, [3]),
            lambda: next(mine.imap(os._exit, [3])),
        ):
            with pytest.raises(ActorDiedError):
                die()
            assert mine.apply(square, (3,)) == 9


def test_results_that_were_taken_are_not_kept():
    with Pool(2) as mine:
        result = mine.map_async(bytes, [10**6] * 8, chunksize=1)
        assert sum(map(len, result.get())) == 8 * 10**6
        list(mine.imap(bytes, [10**6] * 8))
        assert not any(process._pending for process in mine._processes)
