"""The head keeps its state on disk: a head that is started in place of a lost one goes on with it,
and those who ask late get an answer."""

import os
import signal
import subprocess
import sys

import pytest

import ray
from cluster import cluster, kill
from waiting import PATIENCE_S, eventually, touch, until, wait_for
from ports import free_port
from ray import _raylet, exceptions
from ray.util.state import list_actors


@ray.remote
class Counter:
    def __init__(self):
        self.n = 0

    def add(self):
        self.n += 1
        return self.n

    def pid(self):
        return os.getpid()


@ray.remote
def late(counter):
    return ray.get(counter.add.remote())


def test_a_lost_head_node_is_started_again_with_its_state(tmp_path):
    state = tmp_path / "state"
    with cluster(cpus=2, connect=False, state_dir=state, resources={"here": 1}) as c:
        other = c.join(cpus=2, resources={"there": 1})
        environment = {"RAY_ADDRESS": c.address}
        c.shell.ok(
            "job",
            "submit",
            "--submission-id",
            "before",
            "--",
            sys.executable,
            "-c",
            "print('submitted before')",
            **environment,
        )
        driver = c.program("""
            import ray
            from ray import _raylet
            ray.init(log_to_driver=False)
            @ray.remote(max_restarts=-1, lifetime="detached", namespace="n")
            class Kept:
                n = 0
                def add(self):
                    self.n += 1
                    return self.n
            here = Kept.options(name="here", resources={"here": 0.1}).remote()
            there = Kept.options(name="there", resources={"there": 0.1}).remote()
            assert ray.get([here.add.remote(), there.add.remote()]) == [1, 1]
            mortal = Kept.options(name="mortal", max_restarts=0).remote()
            ray.get(mortal.add.remote())
            ray.kill(mortal)
            _raylet.kv_put("tests", "key", b"value", True)
        """)
        said, _ = driver.communicate(timeout=60)
        assert driver.returncode == 0, said
        gone = [
            c.pid(c.head_node, name)
            for name in ("ray-head", "ray-node-manager", "ray-object-store")
        ]
        # All daemons die at once, as when the machine is switched off.
        kill(*gone)

        out = c.shell.ok(
            "start",
            "--head",
            f"--port={c.port}",
            f"--state-dir={state}",
            "--num-cpus=2",
            "--object-store-memory=100000000",
            "--resources",
            '{"here": 1}',
        )
        assert "goes on" in out
        ray.init(address=c.address, log_to_driver=False, namespace="n")
        c.await_nodes(2)
        assert c.state(c.node_id(other))["Alive"], "the other node is the same"
        assert _raylet.kv_get("tests", "key") == b"value"
        with pytest.raises(ValueError, match="mortal"):
            ray.get_actor("mortal")
        assert "SUCCEEDED" in c.shell.ok("job", "status", "before", **environment).upper()
        assert ray.get(ray.get_actor("there").add.remote(), timeout=60) == 2
        # The actor was restarted, and the head has its class on disk.
        assert (
            ray.get(ray.get_actor("here").add.options(max_task_retries=-1).remote(), timeout=60)
            == 1
        )


def test_a_state_directory_that_cannot_be_used(tmp_path):
    with cluster(connect=False, state_dir=tmp_path / "in use") as c:

        def daemons():
            return {
                pid
                for pid, line in c.processes().items()
                if line.split()[0].rpartition("/")[2]
                in ("ray-head", "ray-node-manager", "ray-object-store")
            }

        def refused(directory):
            before = daemons()
            message = c.shell.fails(
                "start",
                "--head",
                f"--port={free_port()}",
                f"--state-dir={directory}",
                "--object-store-memory=100000000",
            )
            assert eventually(lambda: daemons() == before)
            return message

        assert "in use by another process" in refused(tmp_path / "in use")
        (tmp_path / "file").write_text("")
        assert str(tmp_path / "file" / "below") in refused(tmp_path / "file" / "below")
        (tmp_path / "wreck").mkdir()
        (tmp_path / "wreck" / "head.sqlite").write_bytes(b"no database" * 1000)
        assert "damaged" in refused(tmp_path / "wreck")
        read_only = tmp_path / "read-only"
        read_only.mkdir()
        if (
            subprocess.run(
                ["mount", "-t", "tmpfs", "-o", "ro,size=1m", "none", read_only], capture_output=True
            ).returncode
            == 0
        ):
            try:
                assert "cannot be opened for writing" in refused(read_only)
            finally:
                subprocess.run(["umount", "-l", read_only], check=True)
        assert "for --head only" in c.shell.fails(
            "start", f"--address={c.address}", f"--state-dir={tmp_path}"
        )
        assert "--state-dir is empty" in c.shell.fails("start", "--head", "--state-dir", "")


def test_a_late_caller_hears_why_an_actor_died_before_the_head_was_lost():
    with cluster(cpus=2) as c:
        counter = Counter.remote()
        pid = ray.get(counter.pid.remote())
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(exceptions.ActorDiedError):
            while True:
                try:
                    ray.get(counter.add.remote(), timeout=120)
                except exceptions.ActorUnavailableError:
                    pass
        # Once this write is on disk, all earlier ones are, too.
        _raylet.kv_put("tests", "later", b"value", True)
        c.kill(c.head_node, "ray-head")
        c.shell.ok("start", "--head", f"--port={c.port}")
        with pytest.raises(exceptions.RayError) as caught:
            ray.get(late.remote(counter), timeout=60)
        assert "signal 9" in str(caught.value) and "not known" not in str(caught.value)


@ray.remote(num_cpus=0)
def numbers_when(path):
    wait_for(path)
    return [1, 2]


@ray.remote(num_cpus=0, max_restarts=-1)
class Holder:
    def __init__(self, held):
        self.held = held

    def size(self):
        return len(self.held)


@ray.remote(num_cpus=0, max_retries=0)
def create_and_stay(gate, made):
    """Creates an actor that waits for its argument, and another one that has it; then never
    ends."""
    waiting = Holder.options(name="waiting", lifetime="detached").remote(numbers_when.remote(gate))
    counter = Counter.options(name="of the task").remote()
    ray.get(counter.add.remote())
    with open(made + ".new", "w") as out:
        out.write(str(os.getpid()))
    os.rename(made + ".new", made)
    wait_for(gate)
    return waiting, counter


def state_of(name):
    return [s["state"] for s in list_actors(filters=[("name", "=", name)])]


def test_an_actor_waits_for_its_arguments_across_a_restart_of_the_head(tmp_path):
    gate, made = str(tmp_path / "gate"), str(tmp_path / "made")
    with cluster(cpus=2) as c:
        holder = Holder.options(name="patient").remote(numbers_when.remote(gate))
        size = holder.size.remote()
        staying = create_and_stay.remote(str(tmp_path / "never"), made)
        wait_for(made)
        assert state_of("patient") == state_of("waiting") == ["DEPENDENCIES_UNREADY"]
        c.kill(c.head_node, "ray-head")
        # A creator that ends while the head is away takes its actors with it.
        with open(made) as pid:
            os.kill(int(pid.read()), signal.SIGKILL)
        ray.wait([staying], timeout=PATIENCE_S)
        c.shell.ok("start", "--head", f"--port={c.port}")
        c.await_nodes(1)
        until(lambda: state_of("patient"), lambda states: states == ["DEPENDENCIES_UNREADY"])
        until(lambda: state_of("of the task"), lambda states: states == ["DEAD"])
        until(lambda: state_of("waiting"), lambda states: states == ["DEAD"])
        touch(gate)
        assert ray.get(size, timeout=PATIENCE_S) == 2
