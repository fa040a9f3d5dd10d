"""Runs that cannot work are refused with the cause, and leave nothing behind: no process, no
placement group (both looked for by the fixture `fit`), no file but what the program has made."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from concurrent.futures import ThreadPoolExecutor

import pytest

import ray.train
from ray.train import Checkpoint, ControllerError, FailureConfig, WorkerGroupError, collective
from train_support import stay
from waiting import wait_for

MARKER = ".validate_storage_marker"
RECORD = "checkpoint_manager_snapshot.json"


@pytest.fixture
def left(tmp_path):
    """Yields left(), which lists all files in the test's directory. Workers' temporary files are
    there, too. It leaves out files that a rank had open when it was killed because another rank
    failed: the directory of saves(), and the lock of a checkpoint that it was about to copy."""
    of_killed = re.compile(r"tmp/(tmp\w+/model|\.checkpoint_tmp_\w+\.lock)")

    def files():
        found = (
            os.path.relpath(os.path.join(directory, name), tmp_path)
            for directory, _, names in os.walk(tmp_path)
            for name in names
        )
        return sorted(path for path in found if not of_killed.fullmatch(path))

    return files


@pytest.fixture
def fit(fit, tmp_path):
    (tmp_path / "tmp").mkdir()
    environment = {"env_vars": {"TMPDIR": str(tmp_path / "tmp")}}
    return lambda function, **more: fit(function, worker_runtime_env=environment, **more)


def rank():
    return ray.train.get_context().get_world_rank()


def saves(name, number=1):
    with tempfile.TemporaryDirectory() as directory:
        with open(f"{directory}/model", "w") as file:
            file.write(str(number))
        ray.train.report({"n": number}, Checkpoint(directory), checkpoint_dir_name=name)


def folder_of_run():
    return ray.train.get_context().get_storage().experiment_fs_path


def must_not_run():
    raise AssertionError("the function was started")


@pytest.mark.parametrize("place", ["{}/a-file/below", "/proc/nobody-can-write-here"])
def test_a_storage_path_that_cannot_be_written(fit, tmp_path, left, place):
    (tmp_path / "a-file").write_text("")
    with pytest.raises(OSError, match=r"cannot be written .*: choose a RunConfig\(storage_path="):
        fit(must_not_run, storage_path=place.format(tmp_path))
    assert left() == ["a-file"]


def test_a_place_of_a_checkpoint_that_is_taken_does_not_end_the_run(fit, tmp_path, left):
    def function(config):
        if os.path.exists(config["again"]):
            saves("other")
            return "again"
        collective.barrier()
        if rank() == 0:
            for path in (config["again"], f"{folder_of_run()}/taken"):
                open(path, "w").close()
        collective.barrier()
        saves("taken")

    again = str(tmp_path / "again")
    one_more = FailureConfig(max_failures=1)
    result = fit(function, config={"again": again}, failure_config=one_more)
    assert result.return_value == "again"
    own = ["again", "storage/run/taken"]
    run = [f"storage/run/{name}" for name in (MARKER, RECORD, "other/model")]
    assert left() == sorted([*own, *run])


@pytest.mark.parametrize("name", ["../../outside", "x/../../outside", "."])
def test_a_checkpoint_must_not_lead_out_of_the_folder(fit, left, name):
    with pytest.raises(WorkerGroupError) as caught:
        fit(lambda: saves(name))
    error = next(iter(caught.value.worker_failures.values()))
    assert isinstance(error, ValueError) and "below the folder of this run" in str(error)
    assert left() == [f"storage/run/{MARKER}"]


def test_a_checkpoint_that_is_gone_before_it_is_reported(fit, left):
    def function():
        directory = tempfile.mkdtemp()
        checkpoint = Checkpoint(directory)
        os.rmdir(directory)
        ray.train.report({}, checkpoint)

    with pytest.raises(WorkerGroupError, match="There is no such checkpoint: '/") as caught:
        fit(function)
    failures = caught.value.worker_failures.values()
    assert all(isinstance(failure, FileNotFoundError) for failure in failures)
    assert left() == [f"storage/run/{MARKER}"]


def test_a_checkpoint_that_is_gone_when_the_run_goes_on(fit, left):
    def function():
        checkpoint = ray.train.get_checkpoint()
        if checkpoint is not None:
            checkpoint.to_directory()
        saves("one")
        ray.train.get_all_reported_checkpoints()
        if rank() == 0:
            shutil.rmtree(f"{folder_of_run()}/one")
        collective.barrier()
        raise RuntimeError("once")

    with pytest.raises(WorkerGroupError, match="no such directory to copy from: '/.*/one'"):
        fit(function, failure_config=FailureConfig(max_failures=1))
    assert left() == [f"storage/run/{name}" for name in (MARKER, RECORD)]
    # A later run of this name does not begin without the checkpoint either.
    with pytest.raises(ray.exceptions.ActorDiedError, match="names checkpoints that are not there"):
        fit(must_not_run)
    assert left() == [f"storage/run/{name}" for name in (MARKER, RECORD)]


def test_a_rank_that_never_reports_is_named(fit, left, monkeypatch):
    def function():
        if rank() == 1:
            stay()
        ray.train.report({"n": 1})

    monkeypatch.setenv("RAY_TRAIN_COLLECTIVE_TIMEOUT_S", "0.5")
    with pytest.raises(WorkerGroupError, match="1 did not come .*; waiting: rank 0 in report()"):
        fit(function)
    assert left() == [f"storage/run/{MARKER}"]


@pytest.mark.parametrize("function", [lambda a, b: None, lambda a, *b: None])
def test_a_function_with_two_parameters_is_refused_before_anything_is_made(fit, left, function):
    with pytest.raises(ValueError, match="it has 2 that need a value"):
        fit(function)
    assert left() == []


def test_tensors_in_metrics_are_an_error_of_their_rank(fit, left):
    torch = pytest.importorskip("torch")

    def function():
        value = torch.ones(1) if rank() == 1 else 1.0
        ray.train.report({"deep": [{"loss": (value,)}]})

    with pytest.raises(WorkerGroupError, match="tensor.item()") as caught:
        fit(function)
    assert list(caught.value.worker_failures) == [1]
    assert isinstance(caught.value.worker_failures[1], ValueError)
    assert left() == [f"storage/run/{MARKER}"]


# torch asks for these parts of its extension to find out how it was built.
WITHOUT_DISTRIBUTED = """
    import sys

    class WithoutDistributed:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name == "torch.distributed":
                parts = ("c10d", "_rpc", "_dist_autograd", "_faulty_agent")
                extension = sys.modules["torch._C"]
                for attribute in [one for one in vars(extension) if any(p in one for p in parts)]:
                    delattr(extension, attribute)

    sys.meta_path.insert(0, WithoutDistributed)
"""
PROGRAM = """
    import sys
    sys.path[:0] = sys.argv[2:]
    import ray
    from ray.train import ControllerError, RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer
    from train_support import assert_nothing_left

    ray.init(num_cpus=2)
    try:
        TorchTrainer(
            lambda: None,
            scaling_config=ScalingConfig(num_workers=2),
            run_config=RunConfig(name="run", storage_path=sys.argv[1]),
        ).fit()
    except ControllerError as error:
        print(type(error.controller_failure).__name__, "-", error)
    assert_nothing_left()
"""


def test_a_torch_without_distributed(tmp_path, left):
    pytest.importorskip("torch")
    (tmp_path / "python").mkdir()
    (tmp_path / "python" / "sitecustomize.py").write_text(textwrap.dedent(WITHOUT_DISTRIBUTED))
    path = os.pathsep.join([str(tmp_path / "python"), os.environ["PYTHONPATH"]])
    done = subprocess.run(
        [sys.executable, "-B", "-c", textwrap.dedent(PROGRAM), tmp_path / "storage", *sys.path],
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("RuntimeError - "), done.stdout
    assert "This torch was built without torch.distributed" in done.stdout
    # The other rank's error is not told a second time.
    assert "Unhandled error" not in done.stderr, done.stderr
    assert left() == ["python/sitecustomize.py", f"storage/run/{MARKER}"]


def test_a_checkpoint_with_a_pipe_in_it(fit, tmp_path):
    def function():
        with tempfile.TemporaryDirectory() as directory:
            os.mkfifo(f"{directory}/pipe")
            ray.train.report({}, Checkpoint(directory))

    with pytest.raises(WorkerGroupError, match="so it cannot be copied: remove it: .*/pipe"):
        fit(function)


def test_two_runs_of_one_name_at_once(fit, tmp_path):
    def function():
        saves("first")
        (tmp_path / "under way").touch()
        wait_for(tmp_path / "other ended")
        saves("second")

    with ThreadPoolExecutor() as threads:
        run = threads.submit(fit, function)
        wait_for(tmp_path / "under way")
        try:
            with pytest.raises(ControllerError, match="Another run with the name of this one"):
                fit(lambda: saves("other"))
        finally:
            (tmp_path / "other ended").touch()
        names = [os.path.basename(one.path) for one, _ in run.result().best_checkpoints]
    assert names == ["first", "second"]
