"""Options of tasks beyond resources: max_calls, num_returns of generator functions."""

import os

import pytest

import ray
from waiting import touch, until, wait_for


@pytest.fixture(autouse=True)
def own_cluster(cluster):
    yield


def test_worker_ends_after_max_calls():
    @ray.remote(max_calls=2, num_cpus=4)
    def pid():
        return os.getpid()

    pids = [ray.get(pid.remote()) for _ in range(6)]
    assert [pids.count(p) for p in pids] == [2] * 6
    for p in set(pids):
        until(lambda: not os.path.exists(f"/proc/{p}"))


def test_max_calls_under_load_loses_nothing():
    @ray.remote(max_calls=1, max_retries=0)
    def double(x):
        return 2 * x, os.getpid()

    results = ray.get([double.remote(x) for x in range(24)])
    assert [value for value, _ in results] == [2 * x for x in range(24)]
    assert len({p for _, p in results}) == 24


def test_worker_with_objects_stays_until_they_are_gone():
    @ray.remote(max_calls=1, num_cpus=4)
    def keep():
        return [ray.put("kept")], os.getpid()

    refs, p = ray.get(keep.remote())
    assert ray.get(refs[0]) == "kept"
    assert os.path.exists(f"/proc/{p}")


def test_worker_after_its_last_call_takes_no_more_and_ends_with_what_it_owns(tmp_path):
    @ray.remote
    def child():
        return "of a child"

    @ray.remote(max_calls=1, num_cpus=4)
    def parent():
        return os.getpid(), child.remote()

    @ray.remote
    def read(references):
        wait_for(tmp_path / "read")
        return ray.get(references[0])

    (first, kept), (second, dropped) = (ray.get(parent.remote()) for _ in range(2))
    assert first != second
    del dropped
    until(lambda: not os.path.exists(f"/proc/{second}"))
    assert ray.get(kept) == "of a child"
    reader = read.remote([kept])
    del kept
    assert os.path.exists(f"/proc/{first}")
    touch(tmp_path / "read")
    assert ray.get(reader) == "of a child"
    until(lambda: not os.path.exists(f"/proc/{first}"))


def test_worker_after_its_last_call_stays_for_its_running_children(tmp_path):
    @ray.remote(num_cpus=1)
    def child():
        wait_for(tmp_path / "end")
        touch(tmp_path / "ended")

    @ray.remote(max_calls=1, num_cpus=3)
    def parent():
        child.remote()
        return os.getpid()

    process = ray.get(parent.remote())
    assert ray.get(parent.remote()) != process
    assert os.path.exists(f"/proc/{process}")
    touch(tmp_path / "end")
    until(lambda: not os.path.exists(f"/proc/{process}"))
    assert os.path.exists(tmp_path / "ended")


def test_max_calls_counts_failures(tmp_path):
    @ray.remote(max_calls=1, max_retries=1, retry_exceptions=True)
    def fail_once():
        (tmp_path / str(os.getpid())).touch()
        if len(os.listdir(tmp_path)) == 1:
            raise ValueError("once")
        return "second"

    assert ray.get(fail_once.remote()) == "second"
    assert len(os.listdir(tmp_path)) == 2


@pytest.mark.parametrize("value", [-1, 2**31])
def test_max_calls_range(value):
    with pytest.raises(ValueError):
        ray.remote(max_calls=value)(lambda: 1)


def test_generator_fills_the_returns():
    @ray.remote(num_returns=3)
    def f(n):
        for i in range(n):
            yield i * 10

    assert ray.get(f.remote(3)) == [0, 10, 20]
    assert ray.get(f.remote(4)) == [0, 10, 20]
    first, second, third = f.remote(2)
    assert ray.get([first, second]) == [0, 10]
    with pytest.raises(ValueError, match="Task returned 2 objects, but num_returns=3"):
        ray.get(third)


def test_generator_fails_after_some_returns():
    @ray.remote(num_returns=3)
    def f():
        yield 1
        raise KeyError("stop")

    first, second, third = f.remote()
    assert ray.get(first) == 1
    for ref in (second, third):
        with pytest.raises(KeyError):
            ray.get(ref)


def test_generator_that_fails_is_retried(tmp_path):
    @ray.remote(num_returns=2, retry_exceptions=[KeyError])
    def f():
        yield 1
        (tmp_path / str(len(os.listdir(tmp_path)))).touch()
        if len(os.listdir(tmp_path)) < 3:
            raise KeyError("again")
        yield 2

    assert ray.get(f.remote()) == [1, 2]
    assert len(os.listdir(tmp_path)) == 3


def test_options_given_as_bools():
    @ray.remote(num_cpus=True, max_retries=False, max_calls=True, num_returns=True)
    def held():
        return ray.get_runtime_context().get_assigned_resources()

    @ray.remote(
        num_cpus=True,
        max_restarts=True,
        max_concurrency=False,
        max_task_retries=False,
        max_pending_calls=True,
    )
    class Held:
        def resources(self):
            return ray.get_runtime_context().get_assigned_resources()

    assert ray.get(held.remote()) == {"CPU": 1}
    assert ray.get(held.options(num_cpus=False, resources={"thing": True}).remote()) == {"thing": 1}
    assert ray.get(Held.remote().resources.options(max_task_retries=True).remote()) == {"CPU": 1}


@pytest.mark.parametrize("index", [-2, 0, 1])
def test_a_bundle_without_a_placement_group_is_refused_where_it_is_used(index):
    for remote in (ray.remote(lambda: 1), ray.remote(type("A", (), {}))):
        with pytest.raises(ValueError, match=f"placement_group_bundle_index is {index}"):
            remote.options(placement_group_bundle_index=index).remote()
    assert ray.get(ray.remote(lambda: 1).options(placement_group_bundle_index=-1).remote()) == 1
