"""Users' classes, names and callbacks that no run expects. The run ends with an error that says so,
or goes on, and its record is there after its driver has ended."""

import json
import os
import subprocess
import sys
import textwrap
import threading

import pytest
from seeing import context, runs

import ray
import ray.train
from ray.train import config
from ray.train import Checkpoint, CheckpointConfig, RunConfig, UserCallback, WorkerGroupError
from ray.train.checkpoints import CheckpointManager
from ray.train.errors import (
    CheckpointManagerInitializationError,
    ControllerError,
    WorkerHealthCheckFailedError,
    pack,
    unpack,
)
from ray.train.storage import MARKER, SNAPSHOT, StorageContext


class Mute(Exception):
    def __str__(self):
        raise KeyError("no text")


class Ending(Exception):
    def __reduce__(self):
        raise SystemExit(3)


def raises(error):
    def function():
        raise error()

    return function


def test_an_exception_without_a_text(fit):
    with pytest.raises(WorkerGroupError, match="Mute") as caught:
        fit(raises(Mute))
    failures = caught.value.worker_failures
    assert {type(error).__name__ for error in failures.values()} == {"Mute"}
    assert "KeyError" in pack(Mute())[1] and isinstance(unpack(pack(Mute())), Mute)
    assert "Mute" in str(ControllerError(Mute()))


def test_an_exception_that_ends_what_looks_at_it(fit):
    with pytest.raises(
        WorkerGroupError, match="raised a Ending that cannot be looked at"
    ) as caught:
        fit(raises(Ending), workers=1)
    assert isinstance(caught.value.worker_failures[0], WorkerHealthCheckFailedError)


class Exits(UserCallback):
    def after_report(self, run_context, metrics, checkpoint):
        sys.exit(3)

    def after_exception(self, run_context, worker_exceptions):
        sys.exit(4)


def fails():
    raise ValueError("on purpose")


def test_a_callback_that_exits_is_an_error(fit):
    with pytest.raises(ControllerError, match="a callback raised SystemExit: 3"):
        fit(lambda: ray.train.report({}), callbacks=[Exits()])
    with pytest.raises(WorkerGroupError, match="on purpose"):
        fit(fails, callbacks=[Exits()])


class Locked(UserCallback):
    def __init__(self):
        self.lock = threading.Lock()


def test_arguments_that_do_not_pickle_are_named(fit):
    with pytest.raises(TypeError, match="datasets cannot be sent .*generator"):
        fit(lambda: None, datasets={"train": (row for row in [1])})
    with pytest.raises(TypeError, match="callbacks=.* cannot be sent .*lock"):
        fit(lambda: None, callbacks=[Locked()])


class Speechless:
    def __repr__(self):
        raise KeyError("no text")


def hostile_metrics():
    ring = {"x": 1}
    ring["a"] = ring["b"] = [ring]
    deep = {}
    for _ in range(600):
        deep = {"in": deep}
    return {"ring": ring, "deep": deep, "huge": 10**6000, "half": "\ud800", "mute": Speechless()}


@pytest.fixture
def manager(tmp_path):
    storage = StorageContext(str(tmp_path), "run")
    storage.make_marker()
    os.makedirs(storage.place("one"))
    return CheckpointManager(CheckpointConfig(), storage)


def test_metrics_that_no_json_holds_are_recorded_as_near_as_can_be(manager, tmp_path):
    manager.register("one", hostile_metrics(), 0)
    record = json.loads((tmp_path / "run" / SNAPSHOT).read_text())
    metrics = record["latest_checkpoint_result"]["metrics"]
    assert metrics["ring"]["x"] == 1 and metrics["half"] == "\ud800"
    assert int(metrics["huge"], 16) == 10**6000
    assert metrics["mute"].startswith("<Speechless")
    later = CheckpointManager(CheckpointConfig(), StorageContext(str(tmp_path), "run"))
    assert later.load() and later.latest.metrics["half"] == "\ud800"


def test_a_run_reports_such_metrics(fit, tmp_path):
    (tmp_path / "saved").mkdir()

    def function():
        ray.train.report(
            {"half": "\ud800", "mute": Speechless()}, Checkpoint.from_directory(tmp_path / "saved")
        )

    assert fit(function, workers=1).metrics["half"] == "\ud800"


def test_a_record_that_is_nested_too_deeply(manager, tmp_path):
    (tmp_path / "run" / SNAPSHOT).write_text("[" * 100_000)
    with pytest.raises(CheckpointManagerInitializationError, match="cannot be read"):
        manager.load()


@pytest.mark.parametrize("name", [MARKER, SNAPSHOT, f"{SNAPSHOT}/x", ".unfinished-x", "a\0b"])
def test_names_of_checkpoints_that_the_run_itself_needs(manager, name, tmp_path):
    storage = StorageContext(str(tmp_path), "run")
    with pytest.raises(ValueError, match="Choose another one"):
        storage.checked_name(name)
    assert storage.checked_name("..unfinished") == "..unfinished"
    assert storage.checked_name("a/../latest/") == "latest"


def test_runs_of_one_second_have_different_names(tmp_path):
    names = [RunConfig(storage_path=str(tmp_path)).name for _ in range(50)]
    assert len(set(names)) == 50


def test_a_name_whose_folder_another_process_has_made_is_not_given_again(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "_given_names", set())
    taken = [RunConfig(storage_path=str(tmp_path)).name for _ in range(2)]
    for name in taken:
        (tmp_path / name).mkdir()
    config._given_names.clear()
    assert RunConfig(storage_path=str(tmp_path)).name not in taken


@pytest.mark.parametrize("name", ["..", "../x", "/x", "a/../../b", ".", "a\0b", "\ud800"])
def test_names_that_lead_out_of_the_storage_path_are_refused(name):
    with pytest.raises(ValueError, match="below the storage path"):
        RunConfig(name=name)


@pytest.mark.parametrize("name", ["a/b", "...", "a/", "ä b", "-x"])
def test_names_of_folders_are_taken(name):
    assert RunConfig(name=name).name == name


DRIVER = """
    import logging, sys
    import ray, ray.train
    from ray.train import RunConfig, ScalingConfig
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

    def function():
        logging.getLogger("mine").info("it %s", "informs")
        logging.warning("it warns")
        logging.getLogger("torch.distributed").info("it meets")
        logging.basicConfig(force=True, format="own %(message)s")
        logging.warning("once")
        ray.train.report({"loss": 0.5})

    ray.init(address=sys.argv[1])
    DataParallelTrainer(
        function,
        scaling_config=ScalingConfig(num_workers=1),
        run_config=RunConfig(name="of-another", storage_path=sys.argv[2]),
    ).fit()
"""


def test_a_run_stays_recorded_when_its_driver_has_ended(train_cluster, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(DRIVER), context()["head_address"], str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "RAY_COLOR_PREFIX": "0"},
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    for line in ("it informs", "it warns", "own once"):
        assert said.count(f") {line}\n") == 1, said
    assert "\n".join(said.splitlines()).count("once") == 1, said
    assert "it meets" not in said
    (run,) = runs("of-another")
    assert run["status"] == "FINISHED" and run["job_id"] != ray.get_runtime_context().job_id.hex()
