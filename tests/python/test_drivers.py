"""Drivers: several at once, joining and coming back, threads, forks, other processes, interactive
programs."""

import asyncio
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import pytest

import ray
from ray._private import session
from ray.cluster_utils import Cluster
from ports import free_port
from waiting import touch, until, wait_for

pytestmark = pytest.mark.usefixtures("no_cluster")


def run(code, *args, **environment):
    merged = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    return subprocess.run(
        [sys.executable, "-c", code, *args], env=merged, capture_output=True, text=True, timeout=60
    )


# ---- finding a cluster

JOIN = "import ray, sys; ray.init(address='auto'); print(ray.get_runtime_context().gcs_address, ray.get(ray.remote(lambda: 'ran').remote()))"


def test_auto_finds_what_another_driver_started(own_root):
    context = ray.init(num_cpus=2)
    found = run(JOIN)
    assert found.stdout == f"{context['address']} ran\n", found.stderr
    assert run(JOIN.replace("address='auto'", ""), RAY_ADDRESS="auto").stdout == found.stdout
    own = run(JOIN.replace("address='auto'", "num_cpus=1"))
    assert "ran" in own.stdout and context["address"] not in own.stdout, (
        "init() without an address starts its own"
    )
    assert not os.path.exists(os.path.join(own_root, "ray_current_cluster"))


def test_without_a_token_the_remedy_is_a_token(tmp_path):
    said = run(
        "import ray; ray.init(address='127.0.0.1:1')", HOME=str(tmp_path), RAY_AUTH_TOKEN=""
    ).stderr
    assert (
        "ConnectionError" in said
        and "rayctl get-auth-token" in said
        and "Is it running" not in said
    )
    assert "Is it running" in run("import ray; ray.init(address='127.0.0.1:1')").stderr


def test_auto_is_not_misled_by_clusters_that_ended(own_root):
    made = run("import ray; c = ray.init(num_cpus=1); print(c['session_dir'])")
    assert made.returncode == 0, made.stderr
    left = [
        name
        for name in os.listdir(own_root)
        if os.path.exists(os.path.join(own_root, name, "head_address"))
    ]
    assert not left, "an orderly end takes the address with it"
    killed = run(
        "import ray, os, signal; c = ray.init(num_cpus=1); print(c['address'], flush=True); "
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    address = killed.stdout.strip()
    nothing = until(lambda: run(JOIN), lambda done: done.returncode != 0)
    assert "ConnectionError" in nothing.stderr and "rayctl start --head" in nothing.stderr
    with open(os.path.join(own_root, "ray_current_cluster"), "w") as file:
        file.write(address + "\n")
    assert "ray_current_cluster" in run(JOIN).stderr
    again = run(
        "import ray; ray.init(num_cpus=1); print(ray.get(ray.remote(lambda: 'ran').remote()))"
    )
    assert "ran" in again.stdout, again.stderr


# ---- drivers of one cluster


def test_drivers_share_names_by_namespace_only():
    context = ray.init(num_cpus=4, namespace="first")

    @ray.remote(num_cpus=0)
    class Named:
        def where(self):
            return ray.get_runtime_context().namespace

    actor = Named.options(name="a").remote()
    assert ray.get(actor.where.remote()) == "first"
    code = """
import ray, sys
address, namespace = sys.argv[1:3]
ray.init(address, namespace=namespace or None)
def look(**where):
    try:
        return ray.get(ray.get_actor("a", **where).where.remote())
    except ValueError:
        return "none"
print(look(), look(namespace="first"), ray.get_runtime_context().namespace == (namespace or ray.get_runtime_context().namespace))      # an actor's is its own
"""
    drivers = [
        subprocess.Popen(
            [sys.executable, "-c", code, context["address"], namespace],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for namespace in ("first", "second", "", "first")
    ]
    said = [driver.communicate(timeout=60)[0] for driver in drivers]
    assert said == [
        "first first True\n",
        "none first True\n",
        "none first True\n",
        "first first True\n",
    ]
    assert ray.get(actor.where.remote()) == "first"


def test_leaving_a_cluster_and_coming_back():
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    try:
        jobs = set()
        f = ray.remote(lambda x: x + 1)
        for i in range(5):
            with ray.init(cluster.address) as context:
                assert context["address"] == cluster.address
                jobs.add(ray.get_runtime_context().get_job_id())
                assert ray.get(f.remote(i)) == i + 1
        assert len(jobs) == 5
    finally:
        cluster.shutdown()


def test_a_cluster_that_was_started_anew_on_the_same_port(tmp_path):
    """The old driver says that its cluster is gone, and can join the new one."""
    root = "/tmp/" + "rs-" + os.urandom(4).hex()
    os.makedirs(root)

    def rayctl(*words):
        done = subprocess.run(
            ["rayctl", *words],
            env={**os.environ, "RAY_TMPDIR": root},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr

    port = free_port()
    start = ("start", "--head", f"--port={port}", "--node-ip-address=127.0.0.1", "--num-cpus=1")
    f = ray.remote(lambda: "ran")
    rayctl(*start)
    try:
        ray.init(f"127.0.0.1:{port}", log_to_driver=False)
        first = ray.get_runtime_context().get_node_id()
        old = ray.put("old")
        assert ray.get(f.remote()) == "ran"
        rayctl("stop", "--force")
        with pytest.raises(ray.exceptions.RayError, match="node-manager|node"):
            ray.get(f.remote(), timeout=120)
        rayctl(*start)
        ray.shutdown()
        ray.init(f"127.0.0.1:{port}", log_to_driver=False)
        assert ray.get(f.remote()) == "ran" and ray.get_runtime_context().get_node_id() != first
        with pytest.raises(Exception):
            ray.get(old, timeout=5)
    finally:
        ray.shutdown()
        rayctl("stop", "--force")
        import shutil

        shutil.rmtree(root, ignore_errors=True)


def test_another_patch_level_works_with_one_warning(monkeypatch, capfd):
    monkeypatch.setattr(session, "RUNTIME", "Python {}.{}.99".format(*sys.version_info[:2]))
    ray.init(num_cpus=2)
    assert ray.get([ray.remote(lambda i=i: i).remote() for i in range(20)]) == list(range(20))
    ray.get([ray.remote(lambda: time.sleep(0.1)).remote() for _ in range(2)])
    ray.shutdown()
    said = [line for line in capfd.readouterr().err.splitlines() if ".99 runs here" in line]
    assert len(said) == 1 and "may not load" not in said[0]


def test_another_minor_version_is_refused(monkeypatch):
    monkeypatch.setattr(session, "RUNTIME", "Python 3.2.6")
    ray.init(num_cpus=1, log_to_driver=False)

    @ray.remote
    class A:
        pass

    with pytest.raises(
        RuntimeError, match="Version mismatch: the driver runs Python 3.2.6, .* run Python 3"
    ):
        ray.get(ray.remote(lambda: 1).remote())
    with pytest.raises(ray.exceptions.ActorDiedError, match="Version mismatch"):
        ray.get(A.remote().__ray_ready__.remote())


# ---- threads and processes


def test_many_threads():
    ray.init(num_cpus=4)
    f = ray.remote(lambda x: x * x)

    @ray.remote(num_cpus=0)
    class Sum:
        def __init__(self):
            self.total = 0

        def add(self, x):
            self.total += x
            return self.total

    total, failures = Sum.remote(), []

    def work(k):
        try:
            for i in range(20):
                assert ray.get(f.remote(k * i)) == (k * i) ** 2
                ref = ray.put([k, i])
                assert ray.wait([ref])[0] == [ref] and ray.get(ref) == [k, i]
                assert f.remote(i).future().result(60) == i * i
                total.add.remote(1)
            assert asyncio.run(awaited(k)) == k * k
        except BaseException as error:
            failures.append(error)

    async def awaited(k):
        return await f.remote(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and ray.get(total.add.remote(0)) == 160


def test_init_and_shutdown_race_in_threads(tmp_path):
    outcomes = []

    def start():
        try:
            ray.init(num_cpus=1, ignore_reinit_error=True)
            outcomes.append(ray.is_initialized())
        except BaseException as error:
            outcomes.append(error)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [True] * 4 and len(ray.nodes()) == 1
    waiting, started = [], str(tmp_path / "started")

    def wait():
        try:
            ray.get(ray.remote(lambda: touch(started) or time.sleep(60)).remote())
        except BaseException as error:
            waiting.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    wait_for(started)
    ray.shutdown()
    thread.join(20)
    assert not thread.is_alive() and len(waiting) == 1, (
        "shutdown() ends what other threads wait for"
    )


def test_shutdown_of_a_driver_that_joined_ends_what_its_threads_wait_for(tmp_path):
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        ray.init(address=cluster.address)
        said, started, end = [], str(tmp_path / "started"), str(tmp_path / "end")

        def wait():
            try:
                ray.get(ray.remote(lambda: touch(started) or wait_for(end)).remote())
            except BaseException as error:
                said.append(str(error))

        thread = threading.Thread(target=wait)
        thread.start()
        wait_for(started)
        ray.shutdown()
        thread.join(20)
        assert not thread.is_alive() and "shut down" in said[0]
    finally:
        touch(end)
        ray.shutdown()
        cluster.shutdown()


FORKED = """
import os, sys, ray
ref, pending = ray.put(1), None
f = ray.remote(lambda: 1)
assert ray.get(f.remote()) == 1
actor = ray.remote(type("A", (), {"m": lambda self: 1})).remote()
pending = actor.m.remote()
pid = os.fork()
if pid == 0:
    for name, use in {"get": lambda: ray.get(ref), "wait": lambda: ray.wait([ref]), "put": lambda: ray.put(2), "remote": f.remote, "method": actor.m.remote, "init": ray.init,
                      "get_actor": lambda: ray.get_actor("a"), "future": lambda: pending.future().result(5), "kill": lambda: ray.kill(actor)}.items():
        try:
            use()
            print(name, "worked", flush=True)
        except RuntimeError as error:
            print(name, "forked from one that was connected" in str(error), flush=True)
    print("initialized", ray.is_initialized(), flush=True)
    ray.shutdown()
    del pending
    sys.exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
print("parent", ray.get([ref, pending, f.remote()]), flush=True)
"""


def test_a_forked_child_is_told():
    done = run(FORKED)
    assert done.stdout.split("\n") == [
        *(
            f"{name} True"
            for name in (
                "get",
                "wait",
                "put",
                "remote",
                "method",
                "init",
                "get_actor",
                "future",
                "kill",
            )
        ),
        "initialized False",
        "parent [1, 1, 1]",
        "",
    ], done.stderr
    assert done.returncode == 0


def square_in_child(address, value, queue):
    try:
        if address:
            ray.init(address, log_to_driver=False)
        queue.put(ray.get(ray.remote(lambda: value * value).remote()))
    except Exception as error:
        queue.put(type(error).__name__)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_children_with_a_life_of_their_own_join(method):
    address = ray.init(num_cpus=2)["address"]
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    children = [
        context.Process(target=square_in_child, args=(address, value, queue)) for value in (2, 3)
    ]
    for child in children:
        child.start()
    assert {queue.get(timeout=60) for _ in children} == {4, 9}
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    assert ray.get(ray.remote(lambda: "parent").remote()) == "parent"


def test_children_forked_by_multiprocessing():
    """Children may use Ray before their parent calls init(), and get an error afterwards. The
    parent is never harmed."""
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    early = context.Process(target=square_in_child, args=("local", 2, queue))
    early.start()
    assert queue.get(timeout=60) == 4
    early.join(60)
    ray.init(num_cpus=1)
    for address in (None, "auto"):
        late = context.Process(target=square_in_child, args=(address, 2, queue))
        late.start()
        assert queue.get(timeout=60) == "RuntimeError"
        late.join(60)
        assert late.exitcode == 0
    with context.Pool(2) as pool:
        assert pool.map(abs, [-1, -2]) == [1, 2]
    assert ray.get(ray.remote(lambda: "parent").remote()) == "parent"


def test_forked_children_end_by_sigterm():
    """init() installs a handler of SIGTERM for the driver. A child that multiprocessing.Pool
    terminates must not run it and unwind the driver's program."""
    ray.init(num_cpus=1)
    for _ in range(30):
        process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
        process.start()
        process.terminate()
        process.join(30)
        assert process.exitcode == -signal.SIGTERM
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_processes_of_a_task():
    ray.init(num_cpus=1)

    @ray.remote
    def forks():
        with multiprocessing.get_context("fork").Pool(2) as pool:
            return pool.map(abs, [-1, -2]), subprocess.run(["true"]).returncode

    assert ray.get([forks.remote() for _ in range(3)]) == [([1, 2], 0)] * 3


# ---- after the end


def test_garbage_that_uses_ray_while_the_interpreter_ends():
    """Cyclic garbage is collected after the atexit handlers: a cluster must not be started for it,
    nor waited for."""
    done = run("""
import gc, ray
gc.set_threshold(1_000_000)  # no collection before the end
class Late:
    def __init__(self, use):
        self.me, self.use = self, use
    def __del__(self):
        try:
            self.use()
        except Exception as error:
            print(type(error).__name__, "exiting" in str(error), flush=True)
        else:
            print("worked", flush=True)
put, init = ray.put, ray.init
ray.init(num_cpus=1)
Late(lambda: put(1))
Late(lambda: init(num_cpus=1))
""")
    assert (done.returncode, done.stdout) == (0, 2 * "RuntimeError True\n"), done.stderr


AT_EXIT = """
import atexit
def at_exit():
    try:
        print("got", ray.get(ray.put(1)))
    except RuntimeError as error:
        print(error)
FIRST
SECOND
ray.init(num_cpus=1)
"""


@pytest.mark.parametrize(
    "after_import, said", [(True, "got 1"), (False, "The interpreter is exiting")]
)
def test_exit_handlers_find_their_cluster_and_start_none(after_import, said):
    """A handler that is registered after `import ray` runs before our own one. A handler that runs
    after ours does not start another cluster."""
    lines = ["import ray", "atexit.register(at_exit)"]
    first, second = lines if after_import else reversed(lines)
    done = run(AT_EXIT.replace("FIRST", first).replace("SECOND", second))
    assert said in done.stdout, done.stdout + done.stderr


def test_a_pickled_reference_of_another_cluster_is_refused():
    """The ids of the first objects are the same in every cluster, so that a reference of another
    cluster must be recognised."""
    ray.init(address="local", num_cpus=1)
    packed = pickle.dumps([ray.put("first"), ray.remote(lambda: 1).remote()])
    assert ray.get(pickle.loads(packed)) == ["first", 1]
    ray.shutdown()
    ray.init(address="local", num_cpus=1)
    kept = ray.put("second")
    with pytest.raises(ray.exceptions.OwnerDiedError, match="another cluster"):
        pickle.loads(packed)
    with pytest.raises(ray.exceptions.RayError, match="another cluster"):
        ray.get(ray.remote(pickle.loads).remote(packed))
    assert ray.get(kept) == "second"
