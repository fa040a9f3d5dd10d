"""When workers end as they should, nothing reports a crash and nobody loses work."""

import atexit
import os
import re
import signal
import threading

import pytest

import ray
from cluster import alive, cluster
from waiting import PATIENCE_S, eventually
from ray.util import state


@pytest.fixture(scope="module")
def running():
    settings = {
        "prestart_workers": 0,
        "idle_worker_timeout_ms": 100,
        "worker_exit_timeout_ms": 5_000,
    }
    with cluster(cpus=4, settings=settings) as made:
        yield made


@ray.remote(num_cpus=0, max_concurrency=8)
class Gate:
    def __init__(self):
        self.there, self.met, self.opened = 0, threading.Barrier(2), threading.Event()

    def meet(self):
        self.met.wait()
        return True

    def arrive_and_wait(self):
        self.there += 1
        self.opened.wait()

    def arrived(self):
        return self.there

    def open(self):
        self.opened.set()


def ended():
    return {
        worker.pid: worker.exit_type
        for worker in state.list_workers(
            filters=[("is_alive", "=", False), ("worker_type", "=", "WORKER")], detail=True
        )
    }


# The child needs a process of its own, so that the parent's process has no task and could end.
def test_an_idle_worker_stays_as_long_as_what_it_submitted(running, tmp_path):
    @ray.remote(runtime_env={"env_vars": {"WHO": "child"}})
    def child(gate):
        ray.get(gate.arrive_and_wait.remote())
        (tmp_path / "done").touch()

    @ray.remote
    def parent(gate):
        # Nobody wants the result of this task.
        child.remote(gate)
        return os.getpid()

    @ray.remote
    def meet(gate):
        assert ray.get(gate.meet.remote())
        return os.getpid()

    gate = Gate.remote()
    pid = ray.get(parent.remote(gate))
    assert eventually(lambda: ray.get(gate.arrived.remote()) == 1)
    # Workers that became idle later have ended. The parent's worker would have ended, too, if
    # nothing kept it.
    others = set(ray.get([meet.remote(gate) for _ in range(2)])) - {pid}
    assert eventually(lambda: others <= set(ended())), ended()
    assert pid not in ended()
    gate.open.remote()
    assert eventually((tmp_path / "done").exists)
    assert eventually(lambda: pid in ended()), ended()
    assert set(ended().values()) == {"INTENDED_SYSTEM_EXIT"}, ended()


def test_workers_whose_driver_leaves_did_not_crash(running):
    said, _ = running.program("""
        import os, ray, time
        ray.init()

        @ray.remote(num_cpus=0)
        class Here:
            async def there(self, pid):
                self.pids = [os.getpid(), pid]
            async def are_there(self):
                return getattr(self, "pids", None)

        @ray.remote
        def stays(here):
            ray.get(here.there.remote(os.getpid()))
            time.sleep(1000)

        here = Here.remote()
        running = stays.remote(here)
        while not (pids := ray.get(here.are_there.remote())):
            pass
        print("workers", *pids)
    """).communicate(timeout=60)
    pids = {int(pid) for pid in re.search(r"^workers (\d+) (\d+)$", said, re.M).groups()}
    assert eventually(lambda: pids <= set(ended())), (pids, ended())
    # The gate of the previous test may have ended meanwhile, because nobody refers to it any more.
    assert set(ended().values()) <= {"INTENDED_SYSTEM_EXIT", "INTENDED_USER_EXIT"}, ended()


def test_actors_that_nobody_refers_to_and_that_do_not_end_are_killed(running):
    """One is stopped, and one is in an exit handler. They share the wait for
    worker_exit_timeout_ms."""

    @ray.remote(num_cpus=2)
    class Stays:
        def pid(self):
            return os.getpid()

        def never_leave_the_exit_handler(self):
            atexit.register(signal.pause)

    @ray.remote(num_cpus=4)
    def next_one():
        return 1

    actors = [Stays.remote(), Stays.remote()]
    pids = ray.get([actor.pid.remote() for actor in actors])
    ray.get(actors[1].never_leave_the_exit_handler.remote())
    os.kill(pids[0], signal.SIGSTOP)
    del actors
    assert ray.get(next_one.remote(), timeout=PATIENCE_S) == 1
    # The connection of a process that is killed closes a moment before the process has ended.
    assert eventually(lambda: not any(alive(pid) for pid in pids))
