"""A node looks after its processes: children that workers leave, constructors that die, a head
that is lost, the memory that the store uses."""

import os
import pathlib
import signal
import subprocess
import sys

import numpy
import pytest

import ray
from cluster import alive, cluster, world
from waiting import eventually
from ray import exceptions


@pytest.fixture(scope="module")
def node():
    with cluster(cpus=2) as running:
        yield running


@ray.remote
class Parent:
    def start(self, **how):
        self.child = subprocess.Popen(["sleep", "1000"], **how)
        return self.child.pid

    def pid(self):
        return os.getpid()


# ---- what workers started


def test_children_end_with_their_actor(node):
    actor = Parent.remote()
    child, alone = ray.get([actor.start.remote(), actor.start.remote(start_new_session=True)])
    assert alive(child) and alive(alone)
    ray.kill(actor)
    assert eventually(lambda: not alive(child))
    # The actor left this process on purpose.
    assert alive(alone)
    os.kill(alone, signal.SIGKILL)
    actor = Parent.remote()
    child = ray.get(actor.start.remote())
    del actor
    assert eventually(lambda: not alive(child))


def test_children_end_with_the_worker_of_a_task(node):
    @ray.remote(max_calls=1)
    def start():
        return subprocess.Popen(["sleep", "1000"]).pid

    child = ray.get(start.remote())
    assert eventually(lambda: not alive(child))


def test_children_end_with_their_driver_and_with_a_killed_node():
    with world(sockets_go=False) as shell:
        program = """if True:
            import os, signal, subprocess, sys, ray
            ray.init(num_cpus=1)
            start = ray.remote(lambda: subprocess.Popen(["sleep", "1000"]).pid)
            print(ray.get(start.remote()), os.getpid(), flush=True)
            if sys.argv[1] == "killed":
                node_manager = ray._private.worker.global_worker.node["processes"]
                os.kill(next(pid for name, pid, _ in node_manager if name == "ray-node-manager"), signal.SIGKILL)
                signal.pause()
        """
        for how in ("ended", "killed"):
            driver = subprocess.Popen(
                [sys.executable, "-c", program, how],
                env=shell.env,
                cwd=shell.scratch,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            child = int(driver.stdout.readline().split()[0])
            assert eventually(lambda: not alive(child)), how
            driver.kill()
            driver.communicate()


def test_a_forked_twin_ends_where_its_task_does(node):
    @ray.remote
    def fork(path):
        twin = os.fork()
        if twin == 0:
            pathlib.Path(path).write_text("the twin was here")
        return twin

    path = node.shell.scratch / "twin"
    twin = ray.get(fork.remote(str(path)))
    # This is the worker's answer; its twin would have answered 0.
    assert twin > 0
    assert eventually(lambda: not alive(twin)) and path.read_text() == "the twin was here"
    assert ray.get(fork.remote(str(path))) > 0


# ---- how an actor's constructor ended its process


@pytest.mark.parametrize(
    "end, said",
    [
        (lambda: os._exit(4), "exited with code 4"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL"),
        (lambda: sys.exit(5), ""),
    ],
)
def test_a_death_in_the_constructor_says_how(node, end, said):
    @ray.remote
    class Dies:
        def __init__(self):
            end()

        def f(self):
            pass

    with pytest.raises(exceptions.RayActorError) as failure:
        ray.get(Dies.remote().f.remote())
    text = str(failure.value)
    assert (
        said in text and "could not be started" not in text and "closed the connection" not in text
    ), text


# ---- the store


def test_what_objects_take_is_not_available(node):
    def used():
        return (
            ray.cluster_resources()["object_store_memory"]
            - ray.available_resources()["object_store_memory"]
        )

    refs = [ray.put(numpy.zeros(10**7, numpy.uint8)) for _ in range(3)]
    assert eventually(lambda: used() >= 3 * 10**7), used()
    assert used() < 4 * 10**7
    status = node.shell.ok("status", "-v", RAY_ADDRESS=node.address)
    assert " 0B/" not in next(
        line for line in status.splitlines() if "object_store_memory" in line
    ), status
    del refs
    assert eventually(lambda: used() == 0), used()


# ---- the head


def test_drivers_hear_of_a_lost_head_and_their_errors_name_it():
    with cluster(connect=False, settings={"head_reconnect_timeout_ms": 2000}) as c:
        program = c.program(
            """
            import os, signal, sys, ray
            ray.init(logging_level="error")
            A = ray.remote(type("A", (), {"f": lambda self: 1}))
            ray.get(ray.remote(lambda: 1).remote())
            print("ready", flush=True)
            sys.stdin.readline()
            try:
                ray.get(A.remote().f.remote())
            except ray.exceptions.RayError as error:
                print("actor:", str(error).replace(chr(10), " "), flush=True)
            sys.stdin.readline()
            try:
                ray.get(ray.remote(lambda: 1).remote())
            except ray.exceptions.RayError as error:
                print("task:", type(error).__name__, str(error).replace(chr(10), " "), flush=True)
        """,
            stdin=subprocess.PIPE,
        )
        while "ready" not in program.stdout.readline():
            pass
        c.kill(c.head_node, "ray-head")
        line = program.stdout.readline()
        assert "(raylet)" in line and f"head at {c.address} is lost" in line, line
        node_manager = c.pid(c.head_node, "ray-node-manager")
        program.stdin.write("\n")
        program.stdin.flush()
        assert eventually(lambda: not alive(node_manager))
        out = program.communicate("\n", timeout=60)[0]
        actor, task = (
            next(line for line in out.splitlines() if line.startswith(what))
            for what in ("actor:", "task:")
        )
        for error in (actor, task):
            assert (
                c.address in error
                and "could not be reached" in error
                and "job finished" not in error
                and ".." not in error.replace("...", "")
            ), out
        assert "LocalRayletDiedError" in task


# ---- settings


def test_names_of_rays_settings_are_known(shell):
    program = """if True:
        import ray
        from ray.cluster_utils import Cluster
        known = {"health_check_initial_delay_ms": 0, "gcs_rpc_server_reconnect_timeout_s": 30, "enable_timeline": False}
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "_system_config": known})
        cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address)
        cluster.wait_for_nodes()
        ray.shutdown()
        cluster.shutdown()
        ray.init(num_cpus=1, _system_config={**known, "max_direct_call_object_size": 1000})
        print(ray.get(ray.remote(lambda: bytes(5000)).remote()) == bytes(5000))
        ray.shutdown()
        try:
            ray.init(num_cpus=1, _system_config={"no_such_setting": 1})
        except ValueError as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=shell.env,
        cwd=shell.scratch,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (
        done.stdout.startswith("True\n")
        and "_system_config: there is no setting 'no_such_setting'" in done.stdout
    ), done
    assert (
        done.stderr.count("health_check_initial_delay_ms") == 1 and "reconnect" not in done.stderr
    ), done.stderr


def test_a_program_with_its_own_cluster_does_not_hide_the_operators(running):
    program = """if True:
        from ray.cluster_utils import Cluster
        Cluster(initialize_head=True, head_node_args={"num_cpus": 1}).shutdown()
    """
    subprocess.run(
        [sys.executable, "-c", program],
        env=running.env,
        cwd=running.scratch,
        check=True,
        timeout=120,
    )
    assert "Autoscaler status" in running.ok("status")
    assert running.ok("status", RAY_ADDRESS="auto").count("node_") == 1


def test_killed_nodes_leave_no_sockets(shell):
    program = """if True:
        import ray
        from ray.cluster_utils import Cluster
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        cluster.remove_node(cluster.add_node(num_cpus=1), allow_graceful=False)
        cluster.shutdown()
    """
    subprocess.run(
        [sys.executable, "-c", program], env=shell.env, cwd=shell.scratch, check=True, timeout=120
    )
    assert not list(shell.root.glob("session_2*/sockets/*"))
