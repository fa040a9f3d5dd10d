"""ray.init() starts or joins a cluster, and ray.shutdown() leaves nothing of it behind."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import ray
from waiting import touch, until, wait_for

pytestmark = pytest.mark.usefixtures("no_cluster")

SEEDS_KEYS = (
    "node_ip_address",
    "raylet_ip_address",
    "redis_address",
    "object_store_address",
    "raylet_socket_name",
    "webui_url",
    "session_dir",
    "metrics_export_port",
    "gcs_address",
    "address",
    "dashboard_agent_listen_port",
    "node_id",
)


def test_init_tells_about_the_node_and_its_resources():
    with ray.init(num_cpus=2, resources={"a": 1.5}, labels={"zone": "b"}) as context:
        assert (
            all(key in context for key in SEEDS_KEYS)
            and context["node_id"] == context.address_info["node_id"]
        )
        assert dict(context) == context.address_info and "address_info" in repr(context)
        assert os.path.isdir(context["session_dir"])
        total = ray.cluster_resources()
        assert (
            total["CPU"] == 2.0
            and total["a"] == 1.5
            and total["node:127.0.0.1"] == 1.0
            and total["memory"] > 0
            and total["object_store_memory"] > 0
        )
        assert total["node:__internal_head__"] == 1.0 and "GPU" not in total
        (node,) = ray.nodes()
        assert (
            node["Alive"]
            and node["NodeID"] == context["node_id"]
            and node["Labels"]["zone"] == "b"
            and node["Resources"] == total
        )
        assert (
            ray.get_runtime_context().get_node_id() == node["NodeID"]
            and context["metrics_export_port"] == node["MetricsExportPort"] > 0
        )
    assert not ray.is_initialized()


def test_second_init():
    context = ray.init(num_cpus=1)
    with pytest.raises(RuntimeError, match="twice"):
        ray.init()
    assert ray.init(ignore_reinit_error=True).address_info == context.address_info
    ray.shutdown()
    ray.shutdown()
    again = ray.init(num_cpus=1)
    assert again["session_dir"] != context["session_dir"]


def test_functions_and_refs_survive_sessions():
    @ray.remote
    def f(x):
        return x + 1

    @ray.remote
    class A:
        def m(self):
            return 1

    ray.init(num_cpus=1)
    ref, actor = f.remote(1), A.remote()
    assert ray.get(ref) == 2 and ray.get(actor.m.remote()) == 1
    ray.shutdown()
    del ref
    ray.init(num_cpus=1)
    assert ray.get(f.remote(2)) == 3
    with pytest.raises(ray.exceptions.ActorHandleNotFoundError):
        actor.m.remote()
    with pytest.raises(ray.exceptions.ActorHandleNotFoundError):
        ray.kill(actor)


def test_auto_init():
    @ray.remote
    def f():
        return "auto"

    assert ray.get(f.remote()) == "auto" and ray.is_initialized()


@pytest.mark.parametrize("store_ends", [False, True])
def test_a_task_cleans_up_after_its_driver_has_left(tmp_path, store_ends):
    """The store of the cluster ends with it, and may do so before its node has noticed anything."""

    @ray.remote
    def cleans_up():
        try:
            touch(tmp_path / "runs")
            threading.Event().wait()
        finally:
            time.sleep(0.5)
            touch(tmp_path / "clean")

    ray.init(num_cpus=1)
    running = cleans_up.remote()
    wait_for(tmp_path / "runs")
    pids = {name: pid for name, pid, _ in ray._private.worker.global_worker.node["processes"]}
    if store_ends:
        os.kill(pids["ray-object-store"], signal.SIGKILL)
        until((tmp_path / "clean").exists)
    ray.shutdown()
    until((tmp_path / "clean").exists)
    del running


def test_nothing_stays_behind():
    context = ray.init(num_cpus=2)

    @ray.remote
    def pid():
        return os.getpid()

    worker = ray.get(pid.remote())
    daemons = [p for _, p, _ in ray._private.worker.global_worker.node["processes"]]
    ray.shutdown(wait_for_processes=True)

    def left():
        ray._private.local_cluster.reap()
        return [p for p in (worker, *daemons) if os.path.exists(f"/proc/{p}")]

    until(left, lambda pids: not pids)
    assert context["session_dir"]


def run(code, **env):
    merged = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **env}
    return subprocess.run(
        [sys.executable, "-c", code], env=merged, capture_output=True, text=True, timeout=60
    )


def test_an_interpreter_without_a_file_of_its_own():
    embedded = run(
        "import sys; sys.executable = None; import ray; ray.init(num_cpus=1); "
        "print(ray.get(ray.remote(lambda: 'ran').remote()))",
        RAY_ADDRESS="",
    )
    assert embedded.stdout == "ran\n", embedded.stderr


def test_a_cluster_of_ones_own_needs_no_home_directory():
    alone = run(
        "import ray; ray.init(num_cpus=1); f = ray.remote(lambda: 'ran'); print(ray.get(f.remote()), len(ray.nodes()))",
        HOME="/nonexistent/home",
        RAY_AUTH_TOKEN="",
        RAY_ADDRESS="",
    )
    assert alone.returncode == 0 and "ran 1" in alone.stdout, alone.stderr


def test_drivers_join_by_address():
    context = ray.init(num_cpus=2, namespace="shared")

    @ray.remote
    class Store:
        def get(self):
            return "from the first driver"

    store = Store.options(name="store").remote()
    ray.get(store.get.remote())
    code = "import ray; ray.init({}, namespace='shared'); print(ray.get(ray.get_actor('store').get.remote()), ray.get_runtime_context().get_job_id())"
    joined = run(code.format(repr(context["address"])))
    assert joined.returncode == 0 and "from the first driver" in joined.stdout, joined.stderr
    assert ray.get_runtime_context().get_job_id() not in joined.stdout
    assert (
        "from the first driver" in run(code.format("'auto'"), RAY_ADDRESS=context["address"]).stdout
    )
    assert (
        "from the first driver" in run(code.format("None"), RAY_ADDRESS=context["address"]).stdout
    )
    wrong = run(f"import ray; ray.init({context['address']!r}, num_cpus=3)")
    assert "ValueError" in wrong.stderr and "num_cpus" in wrong.stderr


def find_actor(name):
    try:
        return ray.get_actor(name)
    except ValueError:
        return None


def test_detached_actors_outlive_their_driver():
    context = ray.init(num_cpus=2, namespace="shared")
    code = (
        "import ray; ray.init({!r}, namespace='shared')\n@ray.remote\nclass A:\n    def m(self): return 'here'\n"
        "a = A.options(name='kept', lifetime='detached').remote(); b = A.options(name='lost').remote()\nray.get([a.m.remote(), b.m.remote()])"
    )
    made = run(code.format(context["address"]))
    assert made.returncode == 0, made.stderr
    assert ray.get(ray.get_actor("kept").m.remote()) == "here"
    until(lambda: not find_actor("lost"))


def test_environment_of_the_job(tmp_path):
    (tmp_path / "module_of_the_driver.py").write_text("X = 42")
    os.environ["PYTHONPATH"], before = (
        f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        os.environ.get("PYTHONPATH"),
    )
    try:
        ray.init(num_cpus=1, runtime_env={"env_vars": {"SOME_VARIABLE": "some value"}})
    finally:
        os.environ["PYTHONPATH"] = before or ""

    @ray.remote
    def f():
        import module_of_the_driver

        return module_of_the_driver.X, os.environ.get("SOME_VARIABLE")

    assert ray.get(f.remote()) == (42, "some value")


def test_timeline(tmp_path):
    ray.init(num_cpus=1)

    @ray.remote
    def step():
        time.sleep(0.02)

    ray.get([step.remote() for _ in range(3)])
    asked = time.monotonic()
    ray.timeline()
    # The call waits for the last events, which are on their way.
    assert time.monotonic() - asked > 0.5
    spans = until(
        lambda: [e for e in ray.timeline() if e["cat"] == "task::step"],
        lambda found: len(found) == 3,
    )
    assert all(
        e["dur"] >= 20_000 and e["ph"] == "X" and e["tid"].startswith("worker:") for e in spans
    )
    assert ray.timeline(filename=tmp_path / "t.json") is None and (tmp_path / "t.json").exists()


@pytest.mark.alone("measures how long a start takes")
def test_speed_of_starting():
    ray.init(num_cpus=2)
    ray.shutdown(wait_for_processes=True)
    start = time.perf_counter()
    ray.init(num_cpus=2)
    # The limit is 0.3 s on an idle machine; `make bench` measures it.
    assert time.perf_counter() - start < 30


def test_the_dashboard_listens_where_it_is_told_to():
    import urllib.request

    with ray.init(num_cpus=1, dashboard_port=0) as context:
        assert context.dashboard_url == context.address_info[
            "webui_url"
        ] and context.dashboard_url.startswith("127.0.0.1:")
        with urllib.request.urlopen(
            f"http://{context.dashboard_url}/api/authentication_mode", timeout=120
        ) as answer:
            assert answer.read() == b'{"authentication_mode":"token"}'
        port = int(context.dashboard_url.rpartition(":")[2])
        from ray.cluster_utils import Cluster

        # A cluster works without an HTTP interface.
        busy = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "dashboard_port": port})
        assert len(busy.list_all_nodes()) == 1
        busy.shutdown()
    with ray.init(num_cpus=1, include_dashboard=False) as context:
        assert context.dashboard_url == "" and ray.get(ray.put(1)) == 1
