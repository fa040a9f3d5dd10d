"""A task lends its CPU to others only while it waits for something that another task may have to
make."""

import contextlib
import fcntl
import os

import pytest

import ray

CPUS = 2


@pytest.fixture(scope="module", autouse=True)
def own_cluster():
    # With this setting every wait counts as a long one.
    ray.init(num_cpus=CPUS, _system_config={"blocked_report_after_us": 0})
    yield
    ray.shutdown(wait_for_processes=True)


@contextlib.contextmanager
def counted(path):
    """Counts the tasks that are inside at the same time, and writes their largest number to
    `path`."""

    def add(step):
        with open(path, "a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            now, most = map(int, (file.read() or "0 0").split())
            file.truncate(0)
            file.write(f"{now + step} {max(most, now + step)}")

    add(1)
    try:
        yield
    finally:
        add(-1)


def look_up_an_actor():
    ray.get_actor("known")


def use_key_values():
    from ray.experimental.internal_kv import _internal_kv_get, _internal_kv_put

    _internal_kv_put(b"key", b"value")
    assert _internal_kv_get(b"key") == b"value"


def put_and_get():
    reference = ray.put(b"x" * 1_000_000)
    assert len(ray.get(reference)) == 1_000_000


@ray.remote(num_cpus=0)
class Known:
    def ready(self):
        return True


@pytest.mark.parametrize("wait", [look_up_an_actor, use_key_values, put_and_get])
def test_a_task_that_waits_for_an_answer_of_the_cluster_keeps_its_cpu(tmp_path, wait):
    known = Known.options(name="known", get_if_exists=True).remote()
    assert ray.get(known.ready.remote())
    path = str(tmp_path / "inside")

    @ray.remote
    def work():
        with counted(path):
            for _ in range(20):
                wait()

    ray.get([work.remote() for _ in range(40)])
    now, most = map(int, open(path).read().split())
    assert now == 0
    assert most <= CPUS


def test_a_task_that_loads_its_function_keeps_its_cpu():
    ballast = b"x" * 24_000_000

    @ray.remote
    def work():
        return os.getpid(), len(ballast)

    done = ray.get([work.remote() for _ in range(40)])
    assert {size for _, size in done} == {len(ballast)}
    # No process is started for it, because there is one for each CPU before the first call.
    assert len({process for process, _ in done}) <= CPUS


def test_a_task_that_gets_what_its_node_has_keeps_its_cpu(tmp_path):
    observed = tmp_path / "observed"

    @ray.remote
    def large():
        return b"x" * 1_000_000

    # The task has resources of its own, because the lease of the other task could serve a task with
    # equal ones.
    @ray.remote(num_cpus=0.5)
    def observe():
        observed.touch()

    @ray.remote(num_cpus=CPUS)
    def work():
        reference = large.remote()
        # This call does lend the CPU.
        ray.wait([reference], fetch_local=False)
        observer = observe.remote()
        for _ in range(100):
            # The value is mapped anew each time, because nobody keeps it.
            assert len(ray.get(reference)) == 1_000_000
            assert ray.wait([reference])[0] == [reference]
        return observed.exists(), observer

    early, observer = ray.get(work.remote())
    ray.get(observer)
    assert observed.exists() and not early


def test_a_task_that_waits_for_another_gives_its_cpu(tmp_path):
    @ray.remote
    def leaf():
        return 1

    @ray.remote
    def get(depth):
        return ray.get(get.remote(depth - 1)) if depth else ray.get(leaf.remote())

    @ray.remote
    def wait(depth):
        made = wait.remote(depth - 1) if depth else leaf.remote()
        ready, _ = ray.wait([made])
        return ray.get(ready[0])

    assert ray.get([get.remote(4), wait.remote(4)], timeout=120) == [1, 1]
