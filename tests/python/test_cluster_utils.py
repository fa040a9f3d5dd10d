"""ray.cluster_utils.Cluster runs several nodes on this machine, which come, go and fail."""

import os
import pathlib
import platform
import subprocess
import sys
import textwrap

import pytest

import ray
from ray._private.daemons import Daemon
from ray.cluster_utils import Cluster
from waiting import until

pytestmark = pytest.mark.usefixtures("no_cluster")
SMALL = {"object_store_memory": 80 * 1024 * 1024}
# The number of the system call that ends one thread.
_EXIT = {"x86_64": 60}.get(platform.machine(), 93)


@pytest.fixture
def nodes(no_cluster):
    """A cluster with a head's node, to which this process is connected."""
    cluster = Cluster(initialize_head=True, connect=True, head_node_args=SMALL)
    yield cluster
    cluster.shutdown()


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] not in "ZX"
    except OSError:
        return False


def pids(cluster):
    return [
        process.pid for node in cluster.list_all_nodes() for _, process in node.live_processes()
    ]


@ray.remote
def where():
    return ray.get_runtime_context().get_node_id()


def test_a_cluster_without_a_head_has_nothing():
    cluster = Cluster()
    assert (
        cluster.address is None
        and cluster.gcs_address is None
        and cluster.head_node is None
        and cluster.list_all_nodes() == []
    )
    with pytest.raises(AssertionError):
        cluster.connect()
    cluster.shutdown()
    with pytest.raises(RuntimeError):
        Cluster(connect=True)


def test_head_node(nodes):
    head = nodes.head_node
    assert (
        nodes.address == nodes.gcs_address == head.address
        and nodes.list_all_nodes() == [head]
        and nodes.worker_nodes == set()
    )
    assert (
        head.is_head()
        and head.node_id == ray.get_runtime_context().get_node_id()
        and head.unique_id.endswith("/plasma_store")
    )
    assert (
        head.session_name == ray.get_runtime_context().get_session_name()
        and head.webui_url == nodes.webui_url == head.address_info["webui_url"]
        and head.webui_url.startswith("127.0.0.1:")
    )
    assert {
        "node_ip_address",
        "raylet_socket_name",
        "object_store_address",
        "session_dir",
        "gcs_address",
        "address",
    } <= set(head.address_info)
    assert [name for name, _ in head.live_processes()] == [
        "gcs_server",
        "raylet",
        "plasma_store",
    ] and head.dead_processes() == []
    assert nodes.remaining_processes_alive()
    assert (
        ray.cluster_resources()["CPU"] == 1
        and ray.nodes()[0]["Resources"]["object_store_memory"] == SMALL["object_store_memory"]
    )
    with pytest.raises(AssertionError):
        nodes.connect()


def test_nodes_come_and_go(nodes):
    node = nodes.add_node(
        num_cpus=3,
        resources={"far": 2},
        node_name="second",
        labels={"kind": "big"},
        memory=10**8,
        **SMALL,
    )
    nodes.wait_for_nodes()
    assert (
        not node.is_head()
        and nodes.worker_nodes == {node}
        and nodes.list_all_nodes() == [nodes.head_node, node]
    )
    entry = next(each for each in ray.nodes() if each["NodeID"] == node.node_id)
    assert (
        entry["Alive"]
        and entry["NodeName"] == "second"
        and entry["Labels"]["kind"] == "big"
        and entry["Resources"]["memory"] == 10**8
    )
    assert ray.cluster_resources()["CPU"] == 4
    assert ray.get(where.options(resources={"far": 1}).remote()) == node.node_id
    ids = [process.pid for _, process in node.live_processes()]
    nodes.remove_node(node)
    assert not any(alive(pid) for pid in ids) and nodes.worker_nodes == set()
    nodes.wait_for_nodes()
    assert not next(each for each in ray.nodes() if each["NodeID"] == node.node_id)["Alive"]
    with pytest.raises(KeyError):
        nodes.remove_node(node)


def test_a_node_that_fails(nodes):
    node = nodes.add_node(resources={"far": 1}, **SMALL)
    node.kill_raylet()
    node.kill_raylet()
    assert (
        node.live_processes() == []
        and node.dead_processes() == []
        and nodes.remaining_processes_alive()
    )
    nodes.remove_node(node)
    nodes.wait_for_nodes()
    other = nodes.add_node(**SMALL)
    _, raylet = other.live_processes()[0]
    raylet.kill()
    assert not nodes.remaining_processes_alive() and raylet in [
        process for _, process in other.dead_processes()
    ]
    nodes.remove_node(other, allow_graceful=False)
    nodes.wait_for_nodes()


def test_waiting_for_a_node_that_is_gone(nodes):
    node = nodes.add_node(**SMALL)
    node.kill_raylet()
    until(lambda: sum(each["Alive"] for each in ray.nodes()) == 1)
    with pytest.raises(TimeoutError):
        nodes.wait_for_nodes(timeout=0.1)


def test_the_node_of_this_process_cannot_go(nodes):
    with pytest.raises(ValueError):
        nodes.remove_node(nodes.head_node)
    assert not ray.is_initialized() and nodes.head_node in nodes.list_all_nodes()


def test_the_head_is_killed_and_started_again(nodes):
    @ray.remote
    class Keeper:
        def get(self):
            return 7

    keeper = Keeper.options(name="keeper").remote()
    assert ray.get(keeper.get.remote()) == 7
    head = nodes.head_node
    head.kill_gcs_server()
    assert [name for name, _ in head.live_processes()] == ["raylet", "plasma_store"]
    head.start_gcs_server()
    assert "gcs_server" in dict(head.live_processes())
    nodes.wait_for_nodes()
    assert (
        ray.get(ray.get_actor("keeper").get.remote()) == 7
        and ray.get(where.remote()) == head.node_id
    )
    with pytest.raises(RuntimeError):
        head.start_gcs_server()
    node = nodes.add_node(resources={"far": 1}, **SMALL)
    assert ray.get(where.options(resources={"far": 1}).remote()) == node.node_id
    with pytest.raises(RuntimeError):
        node.start_gcs_server()


def test_a_daemon_has_ended_when_its_last_thread_has():
    """The main thread of a process is a zombie before the other threads have closed the descriptors
    that they share."""
    program = (
        "import ctypes, threading; threading.Thread(target=input).start(); print(flush=True); ctypes.CDLL(None).syscall(%d, 0)"
        % _EXIT
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        daemon = Daemon(process.pid, 0)
        process.stdout.readline()
        until(lambda: not alive(process.pid), every=0.001)
        assert daemon.poll() is None
        daemon.kill()
        assert daemon.poll() == 0


def test_variables_and_settings(no_cluster):
    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            **SMALL,
            "_system_config": {"heartbeat_interval_ms": 100},
            "env_vars": {"ONLY_HERE": "yes"},
        },
    )
    try:
        assert "ONLY_HERE" not in os.environ
        cluster.connect(namespace="mine")
        assert ray.get_runtime_context().namespace == "mine"
        assert ray.get(ray.remote(lambda: os.environ.get("ONLY_HERE")).remote()) == "yes"
        cluster.add_node(**SMALL)
        for node in cluster.list_all_nodes():
            raylet = dict(node.live_processes())["raylet"].pid
            assert (
                b"--heartbeat-interval-ms=100\0"
                in pathlib.Path(f"/proc/{raylet}/cmdline").read_bytes()
            )
    finally:
        cluster.shutdown()


def test_wrong_arguments(nodes):
    with pytest.raises(TypeError, match="nonsense"):
        nodes.add_node(nonsense=1)
    with pytest.raises(NotImplementedError, match="object_spilling_directory"):
        nodes.add_node(object_spilling_directory="/tmp")
    with pytest.raises(NotImplementedError, match="AutoscalingCluster"):
        ray.cluster_utils.AutoscalingCluster
    assert len(nodes.list_all_nodes()) == 1


def test_shutdown(no_cluster):
    cluster = Cluster(initialize_head=True, head_node_args=SMALL)
    cluster.add_node(**SMALL)
    # This works even when nobody is connected.
    cluster.wait_for_nodes()
    ids = pids(cluster)
    assert len(ids) == 5 and not ray.is_initialized()
    context = ray.init(address="auto")
    assert context.address_info["address"] == cluster.address
    [port] = {
        node["MetricsExportPort"] for node in ray.nodes() if node["NodeID"] == context["node_id"]
    }
    assert context["metrics_export_port"] == port > 0
    ray.shutdown()
    for _ in range(2):
        cluster.shutdown()
    assert (
        not any(alive(pid) for pid in ids)
        and cluster.address is None
        and cluster.list_all_nodes() == []
    )
    with pytest.raises(ConnectionError):
        ray.init(address="auto")


def test_nothing_outlives_the_process(own_root):
    script = textwrap.dedent("""
        import os, signal, sys, time
        from ray.cluster_utils import Cluster
        cluster = Cluster(initialize_head=True, head_node_args={"object_store_memory": 80 * 1024 * 1024})
        print(*(process.pid for node in cluster.list_all_nodes() for _, process in node.live_processes()), flush=True)
        if sys.argv[1] == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
    """)
    for how in ("ended", "killed"):
        ids = [
            int(word)
            for word in subprocess.run(
                [sys.executable, "-c", script, how], stdout=subprocess.PIPE, text=True
            ).stdout.split()
        ]
        assert len(ids) == 3
        until(lambda: [pid for pid in ids if alive(pid)], lambda left: not left)
