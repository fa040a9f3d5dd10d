"""Processes die, as users see it: each test breaks one thing, names what must still hold, and
leaves nothing behind."""

import os
import random
import signal
import threading
import time

import numpy
import pytest

import chaos
import ray
from cluster import alive, cluster, processes_below, world
from waiting import eventually, touch, wait_for
from ray import _raylet, exceptions


# ---- workers


@ray.remote
def die_until(path, attempts):
    """Kills its own worker until it has been tried `attempts` times."""
    with open(path, "a") as tries:
        tries.write("x")
    if os.path.getsize(path) < attempts:
        os.kill(os.getpid(), signal.SIGKILL)
    return os.path.getsize(path)


@ray.remote
def whoami():
    return os.getpid()


@ray.remote
def where(seconds=0):
    time.sleep(seconds)
    return ray.get_runtime_context().get_node_id()


@ray.remote
def where_it_waits_for(gate):
    """Returns the node on which the attempt ran that saw the file `gate`."""
    wait_for(gate)
    return ray.get_runtime_context().get_node_id()


@ray.remote
def size_of(value):
    return len(value)


@ray.remote
class Counter:
    def __init__(self):
        self.n = 0

    def add(self):
        self.n += 1
        return self.n

    def pid(self):
        return os.getpid()

    def wait(self, begun):
        """Touches `begun`, then blocks until its process ends."""
        touch(begun)
        threading.Event().wait()

    def die_until(self, path, attempts):
        with open(path, "a") as tries:
            tries.write("x")
        if os.path.getsize(path) < attempts:
            os.kill(os.getpid(), signal.SIGKILL)
        return os.path.getsize(path)


def answer(counter):
    """Returns what add() returns; None while the actor cannot be reached."""
    try:
        return ray.get(counter.add.remote(), timeout=120)
    except exceptions.ActorUnavailableError:
        return None


def test_a_killed_workers_task_is_retried(tmp_path):
    with cluster() as c:
        # Four attempts are what the default of 3 retries allows.
        assert ray.get(die_until.remote(tmp_path / "default", 4), timeout=120) == 4
        with pytest.raises(exceptions.WorkerCrashedError):
            ray.get(die_until.remote(tmp_path / "one too many", 5), timeout=120)
        assert (tmp_path / "one too many").stat().st_size == 4
        assert (
            ray.get(die_until.options(max_retries=-1).remote(tmp_path / "endless", 8), timeout=60)
            == 8
        )
        c.await_idle()


def test_without_retries_the_error_names_the_signal(tmp_path):
    with cluster() as c:
        with pytest.raises(exceptions.WorkerCrashedError) as caught:
            ray.get(die_until.options(max_retries=0).remote(tmp_path / "once", 2), timeout=120)
        assert (
            "signal 9 (SIGKILL)" in str(caught.value)
            and "die_until" in str(caught.value)
            and "worker process" in str(caught.value)
        )
        assert (tmp_path / "once").stat().st_size == 1
        assert alive(ray.get(whoami.remote()))
        c.await_idle()


def test_tasks_behind_a_killed_one_are_not_charged(tmp_path):
    with cluster(cpus=1) as c:
        short = ray.remote(max_retries=0)(lambda i: i)
        # From now on these tasks are pipelined.
        ray.get([short.remote(i) for i in range(100)])
        killer = die_until.options(max_retries=0).remote(tmp_path / "k", 2)
        refs = [short.remote(i) for i in range(200)]
        with pytest.raises(exceptions.WorkerCrashedError):
            ray.get(killer, timeout=120)
        assert ray.get(refs, timeout=120) == list(range(200))
        c.await_idle()


def test_an_actor_is_restarted_as_often_as_it_may_be(tmp_path):
    with cluster() as c:
        counter = Counter.options(max_restarts=2).remote()
        for begun in (tmp_path / "first", tmp_path / "second"):
            # Calls between the death and the restart fail, too, because they may not be repeated.
            assert eventually(lambda: answer(counter)) == 1
            assert ray.get(counter.add.remote(), timeout=120) == 2
            pid = ray.get(counter.pid.remote())
            waiting = counter.wait.remote(begun)
            wait_for(begun)
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(exceptions.ActorUnavailableError):
                ray.get(waiting, timeout=120)
        assert eventually(lambda: answer(counter)) == 1
        os.kill(ray.get(counter.pid.remote()), signal.SIGKILL)
        with pytest.raises(exceptions.ActorDiedError) as caught:
            eventually(lambda: answer(counter) is None and False, 20)
        assert "signal 9 (SIGKILL)" in str(caught.value) and "Counter" in str(caught.value)
        c.await_idle()


def test_actor_calls_run_again_as_often_as_they_may(tmp_path):
    with cluster() as c:
        counter = Counter.options(max_restarts=-1, max_task_retries=1).remote()
        assert ray.get(counter.die_until.remote(tmp_path / "calls", 2), timeout=120) == 2
        with pytest.raises(exceptions.RayActorError):
            ray.get(counter.die_until.remote(tmp_path / "too many", 3), timeout=120)
        assert (tmp_path / "too many").stat().st_size == 2
        # Calls behind the killing one are not lost, and keep their order.
        killing = counter.die_until.remote(tmp_path / "in order", 2)
        counts = [counter.add.remote() for _ in range(50)]
        assert ray.get(killing, timeout=120) == 2
        assert ray.get(counts, timeout=120) == list(range(1, 51))
        del counter, killing, counts
        c.await_idle()


# ---- nodes


@pytest.mark.parametrize("program", ["ray-node-manager", "ray-object-store"])
def test_a_node_that_loses_a_daemon_leaves_and_its_work_goes_elsewhere(program, tmp_path):
    with cluster(cpus=2) as c:
        session = c.join(cpus=2, resources={"there": 1})
        node = c.node_id(session)
        c.await_nodes(2)
        only_there = ray.remote(resources={"there": 0.1})(lambda: bytearray(b"x" * 3_000_000))
        lost = only_there.remote()
        ray.wait([lost], fetch_local=False, timeout=120)
        survivor = Counter.options(max_restarts=1, resources={}).remote()
        stuck = Counter.options(max_restarts=0, resources={"there": 0.1}).remote()
        ray.get([survivor.add.remote(), stuck.add.remote()])
        gate = tmp_path / "gate"
        spreading = where_it_waits_for.options(scheduling_strategy="SPREAD")
        spread = [spreading.remote(gate) for _ in range(8)]
        assert eventually(lambda: c.processes() and ray.available_resources().get("CPU", 0) == 0)

        begin = time.monotonic()
        c.kill(session, program)
        assert eventually(lambda: not c.state(node)["Alive"]), c.state(node)
        took = time.monotonic() - begin
        touch(gate)
        assert set(ray.get(spread, timeout=120)) == {c.node_id(c.head_node)}, (
            "tasks of the lost node ran elsewhere"
        )
        with pytest.raises(exceptions.ObjectLostError) as caught:
            ray.get(lost, timeout=120)
        assert lost.hex() in str(caught.value) and "node" in str(caught.value)
        with pytest.raises(exceptions.ActorDiedError) as caught:
            ray.get(stuck.add.remote(), timeout=120)
        assert "node" in str(caught.value)
        ray.get(survivor.add.remote(), timeout=120)

        gone = c.state(node)
        assert (
            gone["DeathReason"] in (2, "UNEXPECTED_TERMINATION") and gone["DeathReasonMessage"]
        ), gone
        # The head has not merely waited for the node until node_timeout_ms was over.
        noticed = {
            "ray-node-manager": "its node-manager has ended",
            "ray-object-store": "object store",
        }
        assert noticed[program] in gone["DeathReasonMessage"], gone
        status = c.shell.ok("status", "--address", c.address)
        failures = status.split("Recent failures:")[1].split("Resources")[0]
        assert node[:8] in failures or "127.0.0.1" in failures, status
        # Nothing of the lost node lives on: workers end with their node-manager, and each of the
        # node's two daemons ends with the other one.
        pids = [process["pid"] for process in c.records()[session]["processes"]]
        assert eventually(lambda: not any(alive(pid) for pid in pids)), [
            (pid, alive(pid)) for pid in pids
        ]
        print(f"{program}: noticed after {took:.2f} s")


# ---- the head


def test_a_killed_head_comes_back_and_the_program_went_on(tmp_path):
    with cluster(cpus=2) as c:
        c.join(cpus=2, resources={"there": 1})
        c.await_nodes(2)
        local = Counter.options(name="local", namespace="n").remote()
        there = Counter.options(name="there", namespace="n", resources={"there": 0.1}).remote()
        keeper = Counter.options(
            name="kept", namespace="n", lifetime="detached", max_restarts=1
        ).remote()
        assert ray.get([local.add.remote(), there.add.remote(), keeper.add.remote()]) == [1, 1, 1]
        job = ray.get_runtime_context().get_job_id()
        environment, gate = {"RAY_ADDRESS": c.address}, tmp_path / "gate"
        c.shell.ok(
            "job",
            "submit",
            "--submission-id",
            "before",
            "--no-wait",
            "--",
            "sh",
            "-c",
            f"until [ -e {gate} ]; do sleep 0.1; done; echo submitted before",
            **environment,
        )
        _raylet.kv_put("tests", "key", b"value", True)
        slow = [
            where_it_waits_for.options(resources=there).remote(gate)
            for there in ({}, {"there": 0.1})
        ]
        assert eventually(lambda: ray.available_resources().get("CPU", 0) <= 2), "they run"

        c.kill(c.head_node, "ray-head")
        # During the outage tasks and calls go on as before.
        assert ray.get([whoami.remote() for _ in range(200)], timeout=120)
        assert ray.get([local.add.remote(), there.add.remote()], timeout=120) == [2, 2]
        big = ray.put(bytearray(2_000_000))
        assert ray.get(size_of.remote(big), timeout=120) == 2_000_000

        out = c.shell.run("start", "--head", f"--port={c.port}")
        assert out.returncode == 0 and "started again" in out.stderr, (out.stdout, out.stderr)
        touch(gate)
        assert len(ray.get(slow, timeout=120)) == 2
        c.await_nodes(2)
        # The new head knows everything that the old one knew, and the actors have not noticed.
        assert _raylet.kv_get("tests", "key") == b"value"
        assert eventually(
            lambda: "SUCCEEDED" in c.shell.ok("job", "status", "before", **environment).upper(), 20
        )
        assert "submitted before" in c.shell.ok("job", "logs", "before", **environment)
        assert ray.get(ray.get_actor("local", namespace="n").add.remote(), timeout=120) == 3
        assert ray.get(ray.get_actor("there", namespace="n").add.remote(), timeout=120) == 3
        kept = ray.get_actor("kept", namespace="n")
        os.kill(ray.get(kept.pid.remote()), signal.SIGKILL)
        assert eventually(lambda: answer(kept)) == 1, "the head restarts actors again"
        assert ray.get_runtime_context().get_job_id() == job
        fresh = Counter.options(name="fresh", namespace="n").remote()
        assert ray.get(fresh.add.remote(), timeout=120) == 1
        other = c.program("""
            import ray
            ray.init(namespace="n")
            print("job", ray.get_runtime_context().get_job_id(), ray.get(ray.get_actor("kept").add.remote(), timeout=120))
        """)
        said = other.communicate(timeout=120)[0]
        assert other.returncode == 0 and "job" in said and f"job {job}" not in said, said
        ray.kill(kept)
        del local, there, keeper, fresh, kept, big
        c.await_idle()


def test_a_private_cluster_survives_without_its_head():
    with world() as shell:
        ray.init(num_cpus=2, log_to_driver=False)
        counter = Counter.remote()
        assert ray.get(counter.add.remote()) == 1
        os.kill(daemon(shell, "ray-head"), signal.SIGKILL)
        assert len(ray.get([where.remote(0.001) for _ in range(200)], timeout=120)) == 200
        assert ray.get(counter.add.remote(), timeout=120) == 2
        assert ray.get(size_of.remote(ray.put(bytearray(1_000_000))), timeout=120) == 1_000_000


@pytest.mark.parametrize("program", ["ray-node-manager", "ray-object-store"])
def test_a_driver_without_its_node_gets_clear_errors(program, tmp_path):
    with world(sockets_go=False) as shell:
        ray.init(num_cpus=2, log_to_driver=False)
        counter = Counter.remote()
        ray.get(counter.add.remote())
        running, queued = where.remote(600), [where.remote(600) for _ in range(10)]
        calling = counter.wait.remote(tmp_path / "begun")
        stored = ray.put(numpy.ones(1_000_000))
        wait_for(tmp_path / "begun")
        assert eventually(lambda: ray.available_resources().get("CPU", 0) == 0), "tasks run"
        os.kill(daemon(shell, program), signal.SIGKILL)
        for ref in [*queued, running]:
            with pytest.raises(exceptions.RayError) as caught:
                ray.get(ref, timeout=120)
            assert isinstance(
                caught.value, exceptions.LocalRayletDiedError
            ) and "node-manager is lost" in str(caught.value), repr(caught.value)
        with pytest.raises(exceptions.RayActorError):
            ray.get(calling, timeout=120)
        with pytest.raises(exceptions.LocalRayletDiedError):
            ray.get(where.remote(), timeout=120)
        with pytest.raises(exceptions.RayActorError):
            ray.get(counter.add.remote(), timeout=120)
        assert ray.get(stored, timeout=120).sum() == 1_000_000, "what is mapped stays readable"


def daemon(shell, name):
    (pid,) = [
        pid
        for pid, line in processes_below(shell.root).items()
        if line.split(" ")[0].endswith("/" + name)
    ]
    return pid


def test_a_head_that_dies_again_and_again():
    with cluster(cpus=2) as c:
        counter = Counter.options(name="c").remote()
        total = 0
        for _ in range(5):
            refs = [where.remote(0.01) for _ in range(50)]
            c.kill(c.head_node, "ray-head")
            assert len(ray.get(refs, timeout=120)) == 50
            c.shell.ok("start", "--head", f"--port={c.port}")
            total += 1
            assert ray.get(counter.add.remote(), timeout=120) == total
            assert ray.get(ray.get_actor("c").add.remote(), timeout=120) == total + 1
            total += 1
        c.await_nodes(1)


# ---- nested tasks


def test_recursion_deeper_than_the_cpus():
    with cluster(cpus=2) as c:

        @ray.remote
        def depth(n):
            return 0 if n == 0 else 1 + ray.get(depth.remote(n - 1))

        @ray.remote
        def fib(n):
            return n if n < 2 else sum(ray.get([fib.remote(n - 1), fib.remote(n - 2)]))

        @ray.remote
        def fan(n):
            return sum(ray.get([short.remote(i) for i in range(n)]))

        @ray.remote
        def short(i):
            return i

        assert ray.get(depth.remote(16), timeout=60) == 16
        assert ray.get(fib.remote(8), timeout=60) == 21
        # Many tasks run at once, and each waits for children that are queued behind the other
        # tasks.
        assert ray.get([fan.remote(50) for _ in range(20)], timeout=60) == [sum(range(50))] * 20
        c.await_idle()


def test_what_waits_behind_a_blocked_task_is_taken_back():
    with cluster(cpus=1) as c:

        @ray.remote
        def quick(x):
            return x

        @ray.remote
        def blocked(refs):
            return ray.get(refs[0])

        ray.get([quick.remote(i) for i in range(200)])
        slow = where.remote(1.5)
        waits = blocked.remote([slow])
        refs = [quick.remote(i) for i in range(100)]
        assert ray.get(refs, timeout=120) == list(range(100))
        assert ray.get(waits, timeout=120)
        c.await_idle()


# ---- objects of other nodes


def test_large_results_of_another_node_arrive_and_are_freed_everywhere():
    with cluster(cpus=2) as c:
        c.join(cpus=2, resources={"there": 2})
        c.await_nodes(2)

        @ray.remote(resources={"there": 1})
        def make(i):
            # A result takes 60 of the 100 MB that each store has.
            return numpy.full(7_500_000, i, dtype=numpy.float64)

        @ray.remote
        def total(array):
            return float(array.sum())

        for i in range(6):
            ref = make.remote(i)
            array = ray.get(ref, timeout=120)
            assert (
                array.shape == (7_500_000,)
                and array[0] == array[-1] == i
                and not array.flags.writeable
            )
            del array
            assert ray.get(total.remote(ref), timeout=120) == 7_500_000 * i
            assert (
                ray.get(total.options(resources={"there": 1}).remote(ref), timeout=120)
                == 7_500_000 * i
            )
            del ref
        # Then put objects go to the other node.
        for i in range(6):
            ref = ray.put(numpy.full(7_500_000, i, dtype=numpy.float64))
            assert (
                ray.get(total.options(resources={"there": 1}).remote(ref), timeout=120)
                == 7_500_000 * i
            )
            del ref
        c.await_idle()


# ---- everything at once


def test_clusters_survive_a_short_run_of_chaos():
    """A short run of chaos.py; `make chaos` runs a hundred rounds."""
    chaos.run(int(os.environ.get("RAY_CHAOS_ROUNDS", 10)), random.SystemRandom().randrange(2**32))
