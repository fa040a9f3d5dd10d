"""Runs on several nodes, and what becomes of them when a node dies."""

import os
import subprocess
import tempfile
import threading
import time

import pytest

import ray
import ray.train
from ray._private.programs import path_of
from ray.cluster_utils import Cluster
from ray.train import CheckpointConfig, FailureConfig, RunConfig, ScalingConfig, collective
from ray.train.session import get_session
from ray.train.storage import MARKER, SNAPSHOT
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer
from train_support import Gate, assert_nothing_left, stay, train_processes, wait_for_end


ON_HEAD = {"node:__internal_head__": 0.001}


@pytest.fixture
def cluster():
    """A head without CPUs, on which the controller is, and two nodes of two CPUs."""
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    made.workers = [made.add_node(num_cpus=2) for _ in range(2)]
    made.wait_for_nodes()
    ray.init(address=made.address)
    yield made
    ray.shutdown()
    made.shutdown()


def fit(tmp_path, function, failures=None, num_to_keep=None, **arguments):
    arguments.setdefault("scaling_config", ScalingConfig(num_workers=2))
    return DataParallelTrainer(
        function,
        run_config=RunConfig(
            name="run",
            storage_path=str(tmp_path),
            failure_config=failures or FailureConfig(max_failures=1),
            checkpoint_config=CheckpointConfig(num_to_keep=num_to_keep),
        ),
        **arguments,
    ).fit()


def nothing_left():
    # fit() waits for the deaths of actors, and only on its own node for those of their processes.
    wait_for_end([pid for _, pid in train_processes()])
    assert_nothing_left()


def test_ranks_follow_nodes(cluster, tmp_path):
    def function():
        session = get_session()
        (tmp_path / f"rank-{session.world_rank}").write_text(f"{session.node_id}")
        collective.barrier()

    for strategy in ("PACK", "SPREAD"):
        scaling = ScalingConfig(num_workers=4, placement_strategy=strategy)
        fit(tmp_path, function, scaling_config=scaling)
        nodes = [(tmp_path / f"rank-{number}").read_text() for number in range(4)]
        assert nodes[0] == nodes[1] != nodes[2] == nodes[3]
    nothing_left()


def test_a_node_that_dies(cluster, tmp_path):
    gate = ray.remote(Gate).options(num_cpus=0, resources=ON_HEAD).remote(4)

    def function():
        session = get_session()
        start = ray.train.get_checkpoint()
        if start is None:
            (tmp_path / "saved").mkdir(exist_ok=True)
            ray.train.report({"n": 1}, ray.train.Checkpoint.from_directory(tmp_path / "saved"))
            ray.train.get_all_reported_checkpoints()
            ray.get(gate.arrive.remote())
            stay()
        return session.world_size, start is not None

    def kill_a_node():
        ray.get(gate.wait.remote())
        cluster.remove_node(cluster.workers[1], allow_graceful=False)

    thread = threading.Thread(target=kill_a_node)
    thread.start()
    result = fit(tmp_path, function, scaling_config=ScalingConfig(num_workers=(2, 4)))
    thread.join()
    assert result.return_value == (2, True)
    nothing_left()


def test_labels_say_how_many_workers_of_an_elastic_size_are_possible(cluster, tmp_path):
    cluster.add_node(num_cpus=2, labels={"zone": "here"})
    cluster.wait_for_nodes()

    def function():
        labels = {node["NodeID"]: node["Labels"] for node in ray.nodes()}
        return get_session().world_size, labels[get_session().node_id].get("zone")

    scaling = ScalingConfig(num_workers=(1, 4), label_selector={"zone": "here"})
    assert fit(tmp_path, function, scaling_config=scaling).return_value == (2, "here")
    nothing_left()


@pytest.mark.parametrize(
    ("cause", "first"),
    [("has gone", False), ("no longer sees", False), ("is not shared", True)],
)
def test_the_reason_for_which_a_worker_does_not_see_the_storage(cluster, tmp_path, cause, first):
    def change(storage):
        if cause == "has gone":
            os.rename(storage.experiment_fs_path, tmp_path / "elsewhere")
        else:
            # On this worker's machine the path leads to another directory.
            storage.storage_fs_path = str(tmp_path / "elsewhere")

    def function():
        for changes in (first, True):
            if changes:
                # After this call the controller has written its record.
                ray.train.get_all_reported_checkpoints()
                change(get_session().storage)
            with tempfile.TemporaryDirectory() as own:
                ray.train.report({"n": 1}, ray.train.Checkpoint(own))

    with pytest.raises(ray.train.WorkerGroupError, match=cause):
        DataParallelTrainer(
            function, run_config=RunConfig(name="run", storage_path=str(tmp_path / "storage"))
        ).fit()


def drain_this_node(seconds):
    """Lets the node of this rank go away; returns what all ranks are then told of that."""
    session = get_session()
    if session.world_rank == 0:
        address = ray.get_runtime_context().gcs_address
        subprocess.run(
            [
                path_of("rayctl"),
                "drain-node",
                f"--address={address}",
                f"--node-id={session.node_id}",
                "--reason=DRAIN_NODE_REASON_PREEMPTION",
                "--reason-message=test",
                f"--deadline-remaining-seconds={seconds}",
            ],
            check=True,
        )
    # Each look is a meeting of all ranks.
    while (info := ray.train.get_preemption_info()) is None:
        pass
    return info


def test_a_drained_node_ends_the_group_at_its_deadline(cluster, tmp_path):
    def function():
        session = get_session()
        place = tmp_path / "drained"
        if place.exists():
            assert ray.train.get_preemption_info() is None
            return session.node_id
        assert ray.train.get_preemption_info() is None
        began = time.time()
        info = drain_this_node(2)
        # Ranks 0 and 1 are on one node, because workers are packed.
        assert info.preempted_node_to_ranks == {session.node_id: [0, 1]}
        assert began + 2 <= info.deadline_ms / 1000 <= time.time() + 2
        place.write_text(session.node_id)
        collective.barrier()
        stay()

    result = fit(tmp_path, function, FailureConfig(max_failures=0))
    assert result.return_value != (tmp_path / "drained").read_text()
    nothing_left()


def test_preemptions_that_are_used_up(cluster, tmp_path):
    def function():
        drain_this_node(1)
        stay()

    failures = FailureConfig(max_failures=-1, max_preemption_failures=0)
    with pytest.raises(ray.train.PreemptionError) as caught:
        fit(tmp_path, function, failures)
    assert caught.value.preemption_info.preempted_ranks == [0, 1]


def test_a_failure_while_its_node_is_drained(cluster, tmp_path):
    def function():
        if not (tmp_path / "died").exists():
            drain_this_node(60)
            collective.barrier()
            (tmp_path / "died").touch()
            os._exit(1)
        return "again"

    assert fit(tmp_path, function, FailureConfig(max_failures=0)).return_value == "again"


def drain(node_id, seconds):
    """Drains a node on which rank 0 is not, in so many seconds."""
    subprocess.run(
        [
            path_of("rayctl"),
            "drain-node",
            f"--address={ray.get_runtime_context().gcs_address}",
            f"--node-id={node_id}",
            "--reason=DRAIN_NODE_REASON_PREEMPTION",
            "--reason-message=test",
            f"--deadline-remaining-seconds={seconds}",
        ],
        check=True,
    )


def test_a_checkpoint_without_the_ranks_of_a_drained_node(cluster, tmp_path):
    """Rank 1 comes to no report after the drain of its node; rank 0's checkpoint counts anyway."""

    def function():
        session = get_session()
        start = ray.train.get_checkpoint()
        if start is not None:
            return sorted(os.listdir(start.path)), ray.train.get_preemption_info()
        (tmp_path / f"node-{session.world_rank}").write_text(session.node_id)
        collective.barrier()
        if session.world_rank == 1:
            stay()
        drain((tmp_path / "node-1").read_text(), 30)
        while (info := ray.train.get_preemption_info()) is None:
            pass
        assert info.preempted_ranks == [1]
        own = tmp_path / "own"
        own.mkdir()
        (own / "rank-0").touch()
        ray.train.report({"n": 1}, ray.train.Checkpoint.from_directory(own))
        assert len(ray.train.get_all_reported_checkpoints()) == 1
        os._exit(1)

    failures = FailureConfig(max_failures=0, relax_collectives_on_preemption=True)
    scaling = ScalingConfig(num_workers=2, placement_strategy="SPREAD")
    result = fit(tmp_path, function, failures, scaling_config=scaling)
    assert result.return_value == (["rank-0"], None)
    nothing_left()


def test_a_rank_of_a_drained_node_that_comes_late(cluster, tmp_path):
    """The files of a late rank still get into the checkpoint that was registered without it, and
    nothing else of it does."""
    gate = ray.remote(Gate).options(num_cpus=0, resources=ON_HEAD).remote(1)

    def function():
        session = get_session()
        own = tmp_path / f"own-{session.world_rank}"
        own.mkdir()
        (own / f"rank-{session.world_rank}").touch()
        (tmp_path / f"node-{session.world_rank}").write_text(session.node_id)
        collective.barrier()
        if session.world_rank == 1:
            ray.get(gate.wait.remote())
        else:
            drain((tmp_path / "node-1").read_text(), 60)
        ray.train.report({"n": 1}, ray.train.Checkpoint.from_directory(own))
        if session.world_rank == 0:
            assert len(ray.train.get_all_reported_checkpoints()) == 1
            ray.get(gate.arrive.remote())

    failures = FailureConfig(max_failures=0, relax_collectives_on_preemption=True)
    scaling = ScalingConfig(num_workers=2, placement_strategy="SPREAD")
    result = fit(tmp_path, function, failures, scaling_config=scaling)
    assert sorted(os.listdir(result.checkpoint.path)) == ["rank-0", "rank-1"]
    names = {MARKER, SNAPSHOT, os.path.basename(result.checkpoint.path)}
    assert set(os.listdir(result.path)) == names
    nothing_left()


def test_a_rank_that_comes_late_for_a_checkpoint_that_cannot_be_written(cluster, tmp_path):
    """The checkpoint was registered without the files of a rank, and may be deleted while the rank
    uploads: that must not end the run."""
    gate = ray.remote(Gate).options(num_cpus=0, resources=ON_HEAD).remote(1)

    def function():
        session = get_session()
        own = tmp_path / f"own-{session.world_rank}"
        own.mkdir()
        (own / "file").touch()
        (tmp_path / f"node-{session.world_rank}").write_text(session.node_id)
        collective.barrier()
        if session.world_rank == 0:
            drain((tmp_path / "node-1").read_text(), 60)
            for name in ("first", "second"):
                ray.train.report({}, ray.train.Checkpoint(own), checkpoint_dir_name=name)
            assert len(ray.train.get_all_reported_checkpoints()) == 1
            # This file takes the place of the deleted directory, so that the upload surely fails.
            open(session.storage.place("first"), "w").close()
            ray.get(gate.arrive.remote())
        else:
            ray.get(gate.wait.remote())
            for _ in range(2):
                ray.train.report({}, ray.train.Checkpoint(own))

    failures = FailureConfig(max_failures=0, relax_collectives_on_preemption=True)
    scaling = ScalingConfig(num_workers=2, placement_strategy="SPREAD")
    result = fit(tmp_path, function, failures, scaling_config=scaling, num_to_keep=1)
    assert os.path.basename(result.checkpoint.path) == "second"
    nothing_left()
