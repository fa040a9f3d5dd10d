"""A run whose ranks are on two nodes: the ranks' logs, the place of each rank, and which rank is
late."""

import contextlib
import re
import threading
import time

import pytest
from cluster import Cluster, world
from gate import Gate
from waiting import until

import ray
import ray.train
from ray.train import RunConfig, ScalingConfig, collective
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer


def compute(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))


def report_until_open(config):
    """Prints and reports; rank 1 is late until the gate is open."""
    rank = ray.train.get_context().get_world_rank()
    print(f"rank {rank} speaks")
    opened = config["gate"].wait.remote()
    while True:
        if rank == 1:
            compute(0.03)
        ray.train.report({"loss": 1.0})
        if collective.broadcast_from_rank_zero(bool(ray.wait([opened], timeout=0)[0])):
            return


@pytest.fixture(scope="module")
def two_nodes(tmp_path_factory):
    """A head, and a second node with a temp root of its own: each has a rank of the run "wide"."""
    with world() as shell, contextlib.ExitStack() as end:
        cluster = Cluster(shell, cpus=1, dashboard_port=0)
        cluster.far = shell.scratch / "far"
        shell.ok("start", f"--address={cluster.address}", "--num-cpus=1", RAY_TMPDIR=cluster.far)
        end.callback(shell.ok, "stop", RAY_TMPDIR=cluster.far)
        ray.init(address=cluster.address, log_to_driver=False)
        cluster.await_nodes(2)
        cluster.web = f"http://{ray._private.worker.global_worker.context['dashboard_address']}"
        gate = Gate.remote()
        trainer = DataParallelTrainer(
            report_until_open,
            train_loop_config={"gate": gate},
            scaling_config=ScalingConfig(num_workers=2, placement_strategy="STRICT_SPREAD"),
            run_config=RunConfig(name="wide", storage_path=str(tmp_path_factory.mktemp("runs"))),
        )
        results = []
        thread = threading.Thread(target=lambda: results.append(trainer.fit()))
        thread.start()
        # A report of both ranks shows that their functions run. The table of ranks may come later.
        until(
            lambda: shell.run("train", "show", "wide").stdout,
            lambda text: "last report: loss=1" in text and set(rank_rows(text)) == {0, 1},
        )
        yield cluster
        ray.get(gate.open.remote())
        thread.join(60)
        assert not thread.is_alive() and results, "fit() still runs, or it raised an error"


@pytest.fixture(params=["rpc", "http"])
def rayctl(two_nodes, request):
    """Runs `rayctl train` in each of the two ways to ask."""
    address = two_nodes.address if request.param == "rpc" else two_nodes.web
    return lambda *words: two_nodes.shell.ok("train", *words, f"--address={address}")


def rank_rows(text):
    """Maps each rank of the attempt's table to (node, pid)."""
    return {
        int(rank): (node, int(pid))
        for rank, node, pid in re.findall(
            r"^(\d) +\d +\d +\S+ +([0-9a-f]{12}) +(\d+) +ALIVE$", text, re.M
        )
    }


def test_ranks_are_shown_with_their_nodes(two_nodes, rayctl):
    text = rayctl("show", "wide")
    rows = rank_rows(text)
    nodes = {node["NodeID"][:12] for node in ray.nodes()}
    assert set(rows) == {0, 1} and {node for node, _ in rows.values()} == nodes, text
    until(
        lambda: re.findall(r"^(\d) +.*\(test_train_nodes\.py:\d+\)", rayctl("show", "wide"), re.M),
        lambda found: found == ["0", "1"],
    )


def test_logs_of_a_rank_on_another_node(two_nodes, rayctl):
    here = two_nodes.node_id(two_nodes.head_node)[:12]
    ranks = rank_rows(rayctl("show", "wide"))
    (far,) = [rank for rank, (node, _) in ranks.items() if node != here]
    # The file of this rank is below the temp root of the other node, where the head's node does not
    # look for logs.
    (file,) = two_nodes.far.glob("session_2*/logs/train/ray-train-app-worker-*.log")
    assert f"rank {far} speaks" in file.read_text()
    for number in (0, 1):
        text = rayctl("logs", "wide", f"--rank={number}")
        assert re.search(rf"^\S+ \S+ INFO rank {number} speaks$", text, re.M), text
        assert f"rank {1 - number} speaks" not in text
    assert "Started a group of 2 workers" in rayctl("logs", "wide", "--controller", "--system")


def test_the_late_rank_is_named_with_its_node(two_nodes, rayctl):
    node, pid = rank_rows(rayctl("show", "wide"))[1]
    text = until(
        lambda: rayctl("stragglers", "wide", "--seconds=1"), lambda text: "is the straggler" in text
    )
    assert text.startswith(f"Rank 1 on node {node} (127.0.0.1) is the straggler: in 1.0 s it waits")
    assert "It spends " in text and "in compute (test_train_nodes.py)" in text, text
    assert re.search(rf"^1 +127\.0\.0\.1 {node} +{pid} ", text, re.M), text
