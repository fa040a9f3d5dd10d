"""Runs that profile their first steps, with the torch that is there."""

import logging
import os
import signal

import pytest
from profile_support import merged_events, profiles_of, train
from train_support import assert_nothing_left

from ray import _raylet
from ray.train import FailureConfig, ProfileConfig, RunConfig, ScalingConfig, WorkerGroupError

pytest.importorskip("torch")

from ray.train.torch import TorchTrainer


@pytest.fixture
def run(train_cluster, tmp_path):
    """run(config of train(), profile, workers=2, **more of RunConfig) runs it to its end."""

    def fit(config, profile=True, workers=2, function=train, **more):
        return TorchTrainer(
            function,
            train_loop_config=config,
            scaling_config=ScalingConfig(num_workers=workers),
            run_config=RunConfig(name="run", storage_path=str(tmp_path), profile=profile, **more),
        ).fit()

    yield fit
    assert_nothing_left()
    for directory, names, files in os.walk(tmp_path):
        assert not [name for name in (*names, *files) if name.startswith(".unfinished")], directory


def test_the_first_steps_of_all_ranks_become_one_trace(run, tmp_path):
    run({"epochs": 3, "batches": 2}, ProfileConfig(steps=3, skip=0, warmup=1))
    (record,) = profiles_of("run")
    assert record["status"] == "RECORDED", record["detail"]
    folder = tmp_path / "run.profiles" / record["id"]
    assert record["path"] == str(folder) and record["trace"] == str(folder / "merged.trace.json.gz")
    traces = [one["trace"] for one in record["ranks"]]
    assert len(set(traces)) == 2 and all(path.endswith(".pt.trace.json") for path in traces)
    assert {one.name for one in folder.iterdir()} >= {
        "summary.txt",
        "summary.json",
        *(os.path.basename(path) for path in traces),
    }
    for rank in record["summary"]["ranks"]:
        assert [step["step"] for step in rank["steps"]] == [2, 3, 4]
        # The report at the end of an epoch lies in the step of its last batch. The clock of the
        # trace differs a little from that of the reports, so that a part of one may seem to lie in
        # the next step.
        last_of_first_epoch, first_of_second, last_of_second = (
            step["report_us"] for step in rank["steps"]
        )
        assert first_of_second < min(last_of_first_epoch, last_of_second)
        assert rank["operators"]
    events = merged_events(record["trace"])
    processes = {
        event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"
    }
    assert processes[1] == "controller of the run"
    assert processes[1000].startswith("rank 0 (") and processes[2000].startswith("rank 1 (")
    for pid in (1000, 2000):
        own = {event["name"] for event in events if event["pid"] == pid}
        assert {"data loader", "report", "report: wait for ranks", "ProfilerStep#2"} <= own
        assert any(name.startswith("c10d::") for name in own)
    log = os.path.join(_raylet.context()["session_dir"], "logs", record["log_file"])
    assert merged_events(log) == events
    text = (folder / "summary.txt").read_text()
    assert "steps 2 to 4 (batches) of run run on 2 ranks" in text
    assert sorted(one.name for one in (tmp_path / "run").iterdir()) == [".validate_storage_marker"]


def test_only_the_ranks_asked_for(run):
    config = ProfileConfig(steps=1, ranks=[1, 5], with_stack=False, profile_memory=False)
    run({"epochs": 1, "batches": 6}, config)
    (record,) = profiles_of("run")
    assert [(one["rank"], one["status"]) for one in record["ranks"]] == [
        (1, "RECORDED"),
        (5, "FAILED"),
    ]
    assert record["status"] == "FAILED" and record["detail"] == "rank 5: the group has no such rank"
    assert [rank["rank"] for rank in record["summary"]["ranks"]] == [1]


def test_an_attempt_that_dies_while_it_records_is_followed_by_one_that_records(run, tmp_path):
    marker = str(tmp_path / "killed")

    def die_once(rank, batch):
        if rank == 1 and batch == 4 and not os.path.exists(marker):
            open(marker, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)

    run(
        {"epochs": 2, "batches": 5, "act": die_once},
        failure_config=FailureConfig(max_failures=1),
    )
    first, second = profiles_of("run")
    assert first["status"] == "FAILED" and "its process has ended" in first["detail"]
    assert second["status"] == "RECORDED", second["detail"]
    assert os.listdir(tmp_path / "run.profiles") == [second["id"]]


def test_a_function_that_raises_while_it_records(run, tmp_path):
    def fail(rank, batch):
        if rank == 0 and batch == 4:
            raise ValueError("broken data")

    with pytest.raises(WorkerGroupError, match="broken data"):
        run({"epochs": 1, "batches": 9, "act": fail})
    (record,) = profiles_of("run")
    assert record["status"] == "FAILED" and "the function raised" in record["detail"]
    assert not (tmp_path / "run.profiles").exists()


def test_a_function_that_ends_before_its_steps(run):
    run({"epochs": 1, "batches": 4}, workers=1)
    (record,) = profiles_of("run")
    (rank,) = record["ranks"]
    assert rank["status"] == "RECORDED"
    assert rank["detail"] == "the function ended after 2 of 3 steps"
    run({"epochs": 1, "batches": 2})
    (record,) = profiles_of("run")
    assert record["detail"] == "ranks 0, 1: the function ended before step 3 was recorded"


def test_reports_are_steps_of_a_function_without_batches(run):
    def function(config):
        import torch

        import ray.train

        for _ in range(6):
            torch.ones(9).sum()
            ray.train.report({})

    run({}, function=function)
    (record,) = profiles_of("run")
    assert record["status"] == "RECORDED", record["detail"]
    assert "steps 3 to 5 (reports)" in record["summary"]["what"]
    for rank in record["summary"]["ranks"]:
        assert all(0 < step["report_us"] < step["total_us"] for step in rank["steps"])
        assert "aten::ones" in [one["name"] for one in rank["operators"]]


def test_a_function_with_a_profiler_of_its_own_keeps_it(run, tmp_path):
    def function(config):
        import torch

        import ray.train

        with torch.profiler.profile() as own:
            for _ in range(6):
                torch.ones(9).sum()
                ray.train.report({})
        assert any(event.name == "aten::ones" for event in own.events())

    run({}, function=function)
    (record,) = profiles_of("run")
    assert record["status"] == "FAILED" and "own torch.profiler is active" in record["detail"]


def test_a_function_without_torch_is_told_so(fit):
    def function():
        import ray.train

        for _ in range(6):
            ray.train.report({})

    fit(function, profile=True)
    (record,) = profiles_of("run")
    assert record["status"] == "FAILED" and "has not imported torch" in record["detail"]


def test_without_a_profile_there_is_nothing(run, tmp_path):
    run({"epochs": 1, "batches": 6}, profile=None)
    assert profiles_of("run") == [] and os.listdir(tmp_path) == ["run"]


def test_local_mode_says_that_it_profiles_nothing(caplog):
    def function():
        return 5

    trainer = TorchTrainer(
        function,
        scaling_config=ScalingConfig(num_workers=0),
        run_config=RunConfig(profile=True),
    )
    logger = logging.getLogger("ray.train")
    logger.addHandler(caplog.handler)
    try:
        assert trainer.fit().return_value == 5
    finally:
        logger.removeHandler(caplog.handler)
    assert "RunConfig(profile=...) has no effect with num_workers=0" in caplog.text
