"""A run is seen while it runs and afterwards: over HTTP, by rayctl train, and by its metrics."""

import json
import os
import re
import signal
import urllib.error

import pytest
from seeing import Background, history, is_running, metrics_of, rayctl, runs
from waiting import until

import ray
import ray.train
from ray import _raylet
from ray.train import FailureConfig, ScalingConfig, WorkerGroupError
from ray.train import collective

RUN_FIELDS = (
    "id name job_id controller_actor_id status status_detail start_time_ns end_time_ns "
    "controller_log_file_path framework_versions run_settings attempts job_details"
)
WORKER_FIELDS = (
    "world_rank local_rank node_rank actor_id node_id node_ip pid gpu_ids status resources "
    "log_file_path processStats gpus"
)


def reports_and_waits(config):
    rank = ray.train.get_context().get_world_rank()
    print("rank", rank, "speaks")
    collective.barrier()
    for epoch in range(3):
        ray.train.report({"loss": 1.0 / (epoch + 1), "epoch": epoch, "name": "x"})
    config["gate"].arrive.remote()
    ray.get(config["gate"].wait.remote())


def test_a_run_is_seen_while_it_runs_and_afterwards(train_cluster, tmp_path):
    with Background(reports_and_waits, tmp_path, "seen") as background:
        until(lambda: is_running("seen"), bool)
        (run,) = runs("seen")
        assert set(RUN_FIELDS.split()) <= set(run)
        assert (
            run["job_details"]["job_id"] == run["job_id"] == ray.get_runtime_context().job_id.hex()
        )
        assert run["end_time_ns"] is None
        (attempt,) = run["attempts"]
        assert attempt["status"] == "RUNNING" and attempt["run_id"] == run["id"]
        for rank, worker in enumerate(attempt["workers"]):
            assert set(WORKER_FIELDS.split()) <= set(worker)
            assert worker["world_rank"] == rank and worker["status"] == "ALIVE"
            os.kill(worker["pid"], 0)
            assert worker["processStats"]["memoryInfo"]["rss"] > 1 << 20
        # The numbers of a report come within a second.
        metrics = until(lambda: history(run["id"]), lambda found: found["reports"][-1:] == [3])
        assert metrics["metrics"]["epoch"][-1] == 2 and "name" not in metrics["metrics"]
        assert [rank["world_rank"] for rank in metrics["ranks"]] == [0, 1]
        for rank in metrics["ranks"]:
            assert all(rank[kind] > 0 for kind in ("report_s", "sync_s", "collective_s"))
        check_metrics(run["id"])
        check_rayctl_of_a_living_run(run)
    assert background.error is None
    (run,) = runs("seen")
    assert run["status"] == "FINISHED" and run["end_time_ns"] > run["start_time_ns"]
    assert [worker["status"] for worker in run["attempts"][0]["workers"]] == ["DEAD", "DEAD"]
    assert run["attempts"][0]["workers"][0]["processStats"] is None


def check_metrics(run_id):
    wanted = {"train_report_total_blocked_time_s", "train_checkpoint_sync_total_time_s"}
    found = until(
        lambda: metrics_of(run_id),
        lambda found: all(set(found.get(f"ray_{name}", ())) == {"0", "1"} for name in wanted),
    )
    assert found["ray_train_controller_state"]["RUNNING"] == 1
    others = [
        value for state, value in found["ray_train_controller_state"].items() if state != "RUNNING"
    ]
    assert others and not any(others)
    assert found["ray_train_worker_group_start_total_time_s"][None] > 0
    assert set(found["ray_train_collective_total_blocked_time_s"]) == {"0", "1"}


def check_rayctl_of_a_living_run(run):
    worker = run["attempts"][0]["workers"][1]
    for over_http in (False, True):
        code, out, err = rayctl("train", "list", over_http=over_http)
        assert code == 0 and re.search(r"^seen +RUNNING +1 +2 ", out, re.M), out + err
        code, out, err = rayctl("train", "show", "seen", over_http=over_http)
        assert code == 0 and re.search(rf"^1 +1 +0 .* {worker['pid']} .*ALIVE$", out, re.M), (
            out + err
        )
        assert "epoch=2" in out and "loss=0.333333" in out
        code, out, err = rayctl(
            "train", "show", run["id"][:8], "--format=json", over_http=over_http
        )
        shown = json.loads(out)
        assert shown["id"] == run["id"] and shown["metrics"]["reports"][-1] == 3
        code, out, err = rayctl("train", "logs", "seen", "--rank=1", over_http=over_http)
        assert code == 0 and re.search(r"^\S+ \S+ INFO rank 1 speaks$", out, re.M), out + err
        assert "rank 0 speaks" not in out
    code, out, err = rayctl("train", "logs", "seen", "--raw")
    assert json.loads(out.splitlines()[0])["message"] == "rank 0 speaks"
    code, out, err = rayctl("train", "logs", "seen", "--controller", "--system")
    assert code == 0 and "Started a group of 2 workers" in out, err


def test_gpus_of_ranks(train_cluster, fit, tmp_path):
    def function():
        rank = ray.train.get_context().get_world_rank()
        seen = {"own": ray.get_gpu_ids(), "visible": os.environ["CUDA_VISIBLE_DEVICES"]}
        (tmp_path / f"gpus-{rank}").write_text(json.dumps(seen))

    fit(function, name="gpus", scaling_config=ScalingConfig(num_workers=2, use_gpu=True))
    fit(lambda: None, name="cpus")
    seen = [json.loads((tmp_path / f"gpus-{rank}").read_text()) for rank in range(2)]
    assert sorted(int(one["own"][0]) for one in seen) == [0, 1]
    assert {one["visible"] for one in seen} == {"0,1"}
    (over_http,) = runs("gpus")
    over_rpc = json.loads(rayctl("train", "show", "gpus", "--format=json")[1])
    for run in (over_http, over_rpc):
        for worker, one in zip(run["attempts"][0]["workers"], seen):
            assert worker["gpu_ids"] == [str(gpu) for gpu in one["own"]]
            assert worker["gpus"] == [{"index": int(one["own"][0]), "uuid": None}]
    assert [worker["gpus"] for worker in runs("cpus")[0]["attempts"][0]["workers"]] == [[], []]


def test_wrong_words(train_cluster, fit):
    fit(lambda: None, name="known")
    code, out, err = rayctl("train", "show", "unknown")
    assert code == 1 and out == "" and err.count("\n") == 1
    assert "no training run has the name or id 'unknown'; there are: " in err and "known" in err
    code, out, err = rayctl("train", "logs", "known", "--rank=7")
    assert code == 1 and "run known has no rank 7: attempt 1 has the ranks 0 to 1" in err
    code, out, err = rayctl("train", "logs", "known", "--attempt=9")
    assert code == 1 and "attempt 9 of run known" in err
    assert rayctl("train", "logs", "known", "--rank=x")[0] == 2
    assert rayctl("train", "logs", "known", "--controller", "--rank=1")[0] == 2
    with pytest.raises(urllib.error.HTTPError, match="404"):
        history("0123")
    code, out, err = rayctl("train", "logs", "known")
    assert code == 1 and out == "" and "nothing has been logged yet" in err
    code, out, err = rayctl("train", "lost")
    assert code == 2 and "did you mean list" in err


def test_attempts_of_a_run_that_fails(train_cluster, fit):
    def function():
        if ray.train.get_context().get_world_rank() == 1:
            raise ValueError("it is <b>broken</b>")
        collective.barrier()

    with pytest.raises(WorkerGroupError):
        fit(function, name="fails", failure_config=FailureConfig(max_failures=1))
    (run,) = runs("fails")
    assert run["status"] == "ERRORED" and len(run["attempts"]) == 2
    assert "it is <b>broken</b>" in run["status_detail"]
    assert [attempt["status"] for attempt in run["attempts"]] == ["ERRORED", "ERRORED"]
    assert run["attempts"][0]["end_time_ns"] <= run["attempts"][1]["start_time_ns"]
    out = rayctl("train", "show", "fails")[1]
    assert "Attempt 1: ERRORED" in out and "Attempt 2: ERRORED" in out


def test_a_killed_controller_does_not_look_alive(train_cluster, tmp_path):
    with Background(reports_and_waits, tmp_path, "killed") as background:
        until(lambda: is_running("killed"), bool)
        actors = {
            actor["class_name"]: actor["pid"]
            for actor in _raylet.list_actors(True)
            if actor["state"] != 3
        }
        os.kill(actors["TrainController"], signal.SIGKILL)
        (run,) = until(lambda: runs("killed"), lambda found: found[0]["status"] != "RUNNING")
        assert run["status"] == "ABORTED" and "its controller ended" in run["status_detail"]
        (attempt,) = run["attempts"]
        assert attempt["status"] == "ABORTED" and attempt["end_time_ns"] == run["end_time_ns"] > 0
        assert {worker["status"] for worker in attempt["workers"]} == {"DEAD"}
    assert background.error is not None
    code, out, err = rayctl("train", "list")
    assert re.search(r"^killed +ABORTED ", out, re.M), out + err


def test_a_run_without_metrics(train_cluster, tmp_path, monkeypatch):
    def function(config):
        from ray.util.metrics import Gauge

        ray.train.report({"loss": 1})
        # The values of a process are sent together, so that this one tells when all the others have
        # arrived.
        Gauge("probe_of_a_quiet_run").set(1)
        ray.get(config["gate"].wait.remote())

    monkeypatch.setenv("RAY_TRAIN_METRICS_ENABLED", "0")
    with Background(function, tmp_path, "quiet", places=1):
        until(lambda: "ray_probe_of_a_quiet_run" in rayctl("metrics")[1])
        until(lambda: is_running("quiet"))
        (run,) = runs("quiet")
        assert metrics_of(run["id"]) == {}
