"""fit(): what the function sees, what fit() returns, and what is left behind."""

import glob
import json
import os
import subprocess
import sys

import pytest

import ray
import ray.train
from ray.train import ScalingConfig
from ray.train.session import get_session
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer


def facts(config):
    """Every rank writes the facts that it sees to the directory in its config."""
    context = ray.train.get_context()
    found = {
        "config": config,
        "world_size": context.get_world_size(),
        "world_rank": context.get_world_rank(),
        "local_rank": context.get_local_rank(),
        "local_world_size": context.get_local_world_size(),
        "node_rank": context.get_node_rank(),
        "name": context.get_experiment_name(),
        "folder": context.get_storage().experiment_fs_path,
        "pid": os.getpid(),
        "directory": os.getcwd(),
        "environment": {
            name: os.environ.get(name)
            for name in (
                "RANK",
                "WORLD_SIZE",
                "LOCAL_RANK",
                "LOCAL_WORLD_SIZE",
                "NODE_RANK",
                "RAY_TRAIN_V2_ENABLED",
                "OF_THE_RUN",
            )
        },
        "checkpoint": ray.train.get_checkpoint(),
        "torch": "torch" in sys.modules,
    }
    with open(f"{config['to']}/{context.get_world_rank()}", "w") as file:
        json.dump(found, file)
    return found["world_rank"], "done"


def read(directory):
    return [json.loads((directory / str(rank)).read_text()) for rank in range(2)]


def test_what_ranks_see_and_what_comes_back(fit, tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_TRAIN_V2_ENABLED", "1")
    result = fit(facts, config={"to": str(tmp_path)}, name="seen")
    assert result.return_value == (0, "done")
    assert (result.metrics, result.checkpoint, result.error) == (None, None, None)
    assert result.path == str(tmp_path / "storage" / "seen") and result.best_checkpoints == []
    first, second = read(tmp_path)
    assert first["pid"] != second["pid"]
    for rank, seen in enumerate((first, second)):
        assert seen["config"] == {"to": str(tmp_path)}
        assert (seen["world_size"], seen["local_world_size"], seen["node_rank"]) == (2, 2, 0)
        assert (seen["world_rank"], seen["local_rank"]) == (rank, rank)
        assert (seen["name"], seen["folder"]) == ("seen", result.path)
        assert seen["directory"].endswith("/artifacts/seen")
        assert seen["environment"] == {
            "RANK": str(rank),
            "WORLD_SIZE": "2",
            "LOCAL_RANK": str(rank),
            "LOCAL_WORLD_SIZE": "2",
            "NODE_RANK": "0",
            "RAY_TRAIN_V2_ENABLED": "1",
            "OF_THE_RUN": None,
        }
        assert seen["checkpoint"] is None and not seen["torch"]
    assert os.listdir(result.path) == [".validate_storage_marker"]


def test_the_directory_can_stay_and_the_environment_be_the_users(fit, tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_CHDIR_TO_TRIAL_DIR", "0")
    fit(
        facts,
        config={"to": str(tmp_path)},
        worker_runtime_env={"env_vars": {"OF_THE_RUN": "yes"}},
    )
    for seen in read(tmp_path):
        assert "/artifacts/" not in seen["directory"]
        assert seen["environment"]["OF_THE_RUN"] == "yes"


@pytest.mark.parametrize(
    "function, gets",
    [
        (lambda: "none", "none"),
        (lambda config: config, {"a": 1}),
        (lambda *config: config, ({"a": 1},)),
        (lambda config=5: config, 5),
    ],
)
def test_functions_with_and_without_config(fit, function, gets):
    assert fit(function, workers=1, config={"a": 1}).return_value == gets


def test_without_a_config_the_function_gets_an_empty_one(fit):
    assert fit(lambda config: config, workers=1).return_value == {}


def test_two_parameters_are_refused_by_fit():
    trainer = DataParallelTrainer(lambda a, b: None)
    with pytest.raises(ValueError, match="it has 2"):
        trainer.fit()


def test_the_function_has_a_thread_of_its_own(fit):
    def function():
        import signal
        import threading

        try:
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        except ValueError as error:
            refused = str(error)
        return threading.current_thread().daemon, "main thread" in refused

    assert fit(function, workers=1).return_value == (True, True)


def test_calls_outside_of_a_function():
    from ray.train import collective

    for call in (
        ray.train.get_context,
        ray.train.get_checkpoint,
        ray.train.get_all_reported_checkpoints,
        ray.train.get_preemption_info,
        ray.train.get_dataset_shard,
        lambda: ray.train.report({}),
        collective.barrier,
        lambda: collective.broadcast_from_rank_zero(1),
    ):
        with pytest.raises(RuntimeError, match="outside of a training function"):
            call()


def test_removed_parts_say_so():
    for arguments in ({"metadata": {}}, {"resume_from_checkpoint": "x"}):
        with pytest.raises(DeprecationWarning):
            DataParallelTrainer(lambda: None, **arguments)
    for method in (DataParallelTrainer.restore, DataParallelTrainer.can_restore):
        with pytest.raises(DeprecationWarning):
            method("path")
    from ray.train.data_parallel_trainer import DataParallelTrainer as Old

    with pytest.raises(DeprecationWarning, match="v2.api.data_parallel_trainer"):
        Old(lambda: None)
    import ray.train.trainer

    with pytest.raises(AttributeError, match="TorchTrainer"):
        _ = ray.train.trainer.BaseTrainer
    for name in ("get_trial_name", "get_trial_id", "get_metadata", "get_trial_dir"):
        with pytest.raises(DeprecationWarning):
            getattr(ray.train.TrainContext(), name)()


def test_configurations_of_another_class():
    for name in ("scaling_config", "run_config", "backend_config", "dataset_config"):
        with pytest.raises(ValueError, match=name):
            DataParallelTrainer(lambda: None, **{name: {"num_workers": 2}})


def test_several_runs_in_one_driver(fit):
    pids = {fit(lambda: os.getpid(), workers=1, name=f"run-{n}").return_value for n in range(3)}
    assert len(pids) == 3


def test_a_large_function(fit):
    weights = bytes(3 << 20)
    assert fit(lambda: len(weights)).return_value == 3 << 20


def test_lines_and_files(fit, tmp_path, train_cluster, capfd):
    def function():
        print("printed by rank", ray.train.get_context().get_world_rank())
        ray.train.report({"loss": 0.5})

    fit(function, name="logged")
    session = train_cluster.address_info["session_dir"]
    by_rank = {}
    for path in glob.glob(f"{session}/logs/train/ray-train-app-worker-*.log"):
        for line in open(path):
            entry = json.loads(line)
            if entry["run_name"] == "logged":
                assert entry["component"] == "worker"
                by_rank[entry["world_rank"]] = entry["message"]
    assert by_rank == {0: "printed by rank 0", 1: "printed by rank 1"}
    (path,) = [
        path
        for path in glob.glob(f"{session}/logs/train/ray-train-sys-controller-*.log")
        if "logged" in open(path).read()
    ]
    levels = {json.loads(line)["levelname"] for line in open(path)}
    assert levels == {"INFO", "DEBUG"}


def test_ranks_of_several_nodes_and_gpus():
    from ray.train.ranks import WorkerInfo, assign_ranks, environment_of

    def info(node, gpu, ip=None):
        return WorkerInfo(node, ip or node, 1, "a", "w", (gpu,) if gpu else ())

    workers = assign_ranks([info("n", "10"), info("m", "1"), info("n", "2"), info("m", "0")])
    assert [(one.node_id, one.gpu_ids[0]) for one in workers] == [
        ("n", "2"),
        ("n", "10"),
        ("m", "0"),
        ("m", "1"),
    ]
    assert [(one.rank, one.local_rank, one.node_rank) for one in workers] == [
        (0, 0, 0),
        (1, 1, 0),
        (2, 0, 1),
        (3, 1, 1),
    ]
    assert environment_of(workers[0], workers, True)["CUDA_VISIBLE_DEVICES"] == "2,10"
    assert "CUDA_VISIBLE_DEVICES" not in environment_of(workers[0], workers, False)
    same_machine = assign_ranks([info("n", None, "1.1.1.1"), info("m", None, "1.1.1.1")])
    assert [(one.local_rank, one.local_world_size) for one in same_machine] == [(0, 2), (1, 2)]


def test_workers_with_gpus(fit, tmp_path, monkeypatch):
    def function():
        session = get_session()
        place = tmp_path / f"{os.environ['SHARED']}-{session.world_rank}"
        place.write_text(f"{session.gpu_ids} {os.environ['CUDA_VISIBLE_DEVICES']}")

    for shared in ("1", "0"):
        monkeypatch.setenv("TRAIN_ENABLE_SHARE_CUDA_VISIBLE_DEVICES", shared)
        fit(
            function,
            name=f"shared-{shared}",
            scaling_config=ScalingConfig(num_workers=2, use_gpu=True),
            worker_runtime_env={"env_vars": {"SHARED": shared}},
        )
    seen = {path.name: path.read_text() for path in tmp_path.iterdir() if path.is_file()}
    assert seen == {
        "1-0": "['0'] 0,1",
        "1-1": "['1'] 0,1",
        "0-0": "['0'] 0",
        "0-1": "['1'] 1",
    }


def test_the_record_of_a_run(fit):
    def function():
        ray.train.report({})
        return ray.get(get_session().setup.controller.state.remote())

    record = fit(function, name="recorded", config={"rate": 0.5}).return_value
    assert (record["name"], record["status"]) == ("recorded", "RUNNING")
    assert record["end_time_ns"] is None and record["start_time_ns"] > 1e18
    assert record["run_settings"]["train_loop_config"] == "{'rate': 0.5}"
    (attempt,) = record["attempts"]
    assert attempt["status"] == "RUNNING" and attempt["run_id"] == record["id"]
    assert [worker["world_rank"] for worker in attempt["workers"]] == [0, 1]
    assert {worker["status"] for worker in attempt["workers"]} == {"ALIVE"}
    json.dumps(record)


def test_a_record_through_restart_and_end():
    from ray.train.ranks import WorkerInfo
    from ray.train.state import RunRecord

    record = RunRecord("r", "name", "job", "actor", {})
    record.show("SCHEDULING")
    record.begin_attempt(1, [{"CPU": 1}])
    record.set_workers([WorkerInfo("n", "ip", 1, "a", "w", rank=0)], {"CPU": 1})
    record.show_attempt(1, "ERRORED", "why")
    record.worker_died(1, 0)
    record.end_attempt(1)
    record.show("RESTARTING", "rank 0")
    before = record.version
    record.begin_attempt(2, [{"CPU": 1}])
    record.show("FINISHED")
    assert record.version > before
    shown = record.to_dict()
    assert shown["status"] == "FINISHED" and shown["end_time_ns"]
    first, second = shown["attempts"]
    assert (first["status"], first["status_detail"]) == ("ERRORED", "why")
    assert first["end_time_ns"] and first["workers"][0]["status"] == "DEAD"
    assert (second["status"], second["end_time_ns"]) == ("PENDING", None)


def test_the_import_is_light():
    code = (
        "import sys, ray.train as train\n"
        "heavy = {'torch', 'numpy', 'pandas', 'pyarrow', 'fsspec', 'asyncio'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert not hasattr(train, 'torch')\n"
        "for name in train.__all__:\n"
        "    thing = getattr(train, name)\n"
        "    assert name == 'TRAIN_DATASET_KEY' or thing.__module__ == 'ray.train', name\n"
        "heavy = {'torch', 'numpy', 'pandas', 'pyarrow', 'fsspec', 'asyncio'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_local_mode(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    from ray.train import collective

    def function(config):
        context = ray.train.get_context()
        assert (context.get_world_size(), context.get_world_rank()) == (1, 0)
        collective.barrier()
        assert collective.broadcast_from_rank_zero(3) == 3
        assert ray.train.get_checkpoint() is None
        checkpoint = ray.train.Checkpoint.from_directory(str(tmp_path))
        ray.train.report({"n": 1})
        ray.train.report({"n": 2}, checkpoint=checkpoint)
        assert ray.train.get_checkpoint() is checkpoint
        return os.getpid()

    result = DataParallelTrainer(function, scaling_config=ScalingConfig(num_workers=0)).fit()
    assert result.return_value == os.getpid() and result.path is None
    assert result.metrics == {"n": 2} and result.checkpoint.path == str(tmp_path)
    assert os.listdir(tmp_path) == []
    with pytest.raises(ZeroDivisionError):
        DataParallelTrainer(lambda: 1 / 0, scaling_config=ScalingConfig(num_workers=0)).fit()
    with pytest.raises(RuntimeError):
        ray.train.get_context()


def test_a_run_starts_a_cluster_if_there_is_none(tmp_path):
    code = (
        "import sys\n"
        "from ray.train import RunConfig\n"
        "from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer\n"
        "trainer = DataParallelTrainer(lambda: 7, run_config=RunConfig(storage_path=sys.argv[1]))\n"
        "assert trainer.fit().return_value == 7\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
