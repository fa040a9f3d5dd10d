"""report(): the barrier, directories, upload modes, and what is registered."""

import json
import os
import tempfile
import threading
import time

import pytest

import ray.train
from ray.train import Checkpoint, CheckpointConfig, CheckpointUploadMode, UserCallback, collective
from train_support import stay


def rank():
    return ray.train.get_context().get_world_rank()


def saved(text, name=None):
    """A local checkpoint with one file of this rank."""
    directory = tempfile.mkdtemp(prefix="saved-", dir=os.environ["RAY_TMPDIR"])
    with open(os.path.join(directory, name or f"rank-{rank()}"), "w") as file:
        file.write(text)
    return Checkpoint.from_directory(directory)


def files(directory):
    return {
        os.path.relpath(os.path.join(top, name), directory): open(os.path.join(top, name)).read()
        for top, _, names in os.walk(directory)
        for name in names
    }


def test_the_files_of_all_ranks_become_one_directory(fit):
    def function():
        ray.train.report({"loss": 1.0 + rank()}, checkpoint=saved(f"of {rank()}"))
        return ray.train.get_checkpoint().path

    result = fit(function)
    assert files(result.checkpoint.path) == {"rank-0": "of 0", "rank-1": "of 1"}
    assert result.metrics == {"loss": 1.0}
    assert result.return_value == result.checkpoint.path
    assert os.path.basename(result.checkpoint.path).startswith("checkpoint_20")
    assert os.path.dirname(result.checkpoint.path) == result.path


def test_rank_zero_names_the_directory(fit):
    def function():
        checkpoint = saved("x") if rank() == 1 else None
        ray.train.report({"r": rank()}, checkpoint, checkpoint_dir_name=f"named-by-{rank()}")
        return ray.train.get_checkpoint()

    result = fit(function)
    assert sorted(os.listdir(result.path)) == [
        ".validate_storage_marker",
        "checkpoint_manager_snapshot.json",
        "named-by-0",
    ]
    assert result.metrics == {"r": 0} and result.return_value is None


def test_metrics_without_a_checkpoint_leave_nothing(fit):
    result = fit(lambda: [ray.train.report({"n": n}) for n in range(20)] and None)
    assert result.metrics is None and os.listdir(result.path) == [".validate_storage_marker"]


def test_the_best_and_the_latest_checkpoints_are_kept(fit):
    def function():
        for loss in (3, 1, 2, 5):
            ray.train.report({"eval": {"loss": loss}}, saved(str(loss), "x"), f"loss-{loss}")
        return [one.metrics["eval"]["loss"] for one in ray.train.get_all_reported_checkpoints()]

    keep = CheckpointConfig(2, "eval/loss", "min")
    result = fit(function, checkpoint_config=keep)
    # The best two, with the best one last. The latest one is the worst and is kept besides.
    assert result.return_value == [5, 2, 1]
    assert [metrics["eval"]["loss"] for _, metrics in result.best_checkpoints] == [2, 1]
    assert result.metrics == {"eval": {"loss": 5}}
    kept = {name for name in os.listdir(result.path) if name.startswith("loss-")}
    assert kept == {"loss-5", "loss-2", "loss-1"}


@pytest.mark.parametrize("delete", [None, False])
def test_asynchronous_uploads(fit, delete):
    def function():
        places = []
        for n in range(3):
            checkpoint = saved(str(n), "x")
            places.append(checkpoint.path)
            ray.train.report(
                {"n": n},
                checkpoint,
                f"at-{n}",
                CheckpointUploadMode.ASYNC,
                delete_local_checkpoint_after_upload=delete,
            )
            ray.train.report({"n": n + 0.5})
        names = [
            os.path.basename(one.checkpoint.path)
            for one in ray.train.get_all_reported_checkpoints()
        ]
        return names, [os.path.exists(place) for place in places]

    result = fit(function)
    assert result.return_value == (["at-0", "at-1", "at-2"], [delete is False] * 3)
    assert result.metrics == {"n": 2} and files(result.checkpoint.path) == {"x": "2"}


def test_a_synchronous_upload_follows_asynchronous_ones(fit):
    def function():
        for n in range(4):
            mode = CheckpointUploadMode.SYNC if n % 2 else CheckpointUploadMode.ASYNC
            ray.train.report({"n": n}, saved(str(n), "x"), f"at-{n}", mode)
        return ray.train.get_checkpoint().path

    result = fit(function)
    assert [metrics["n"] for _, metrics in result.best_checkpoints] == [0, 1, 2, 3]
    assert result.return_value.endswith("at-3")


def test_reports_overtake_no_upload_before_them(fit, tmp_path):
    def function():
        returned = threading.Event()

        def slow(checkpoint, name):
            assert returned.wait(30)
            return ray.train.get_context().get_storage().persist(checkpoint, name)

        mode = CheckpointUploadMode.ASYNC
        ray.train.report({"n": 0}, saved("0"), "0", mode, checkpoint_upload_fn=slow)
        ray.train.report({"n": 1})
        returned.set()
        ray.train.report({"n": 2}, saved("2"), "2")

    path = tmp_path / "heard"
    fit(function, callbacks=[Recorder(str(path))])
    heard = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(metrics[0]["n"], name) for _, _, metrics, name in heard] == [
        (0, "0"),
        (1, None),
        (2, "2"),
    ]


def test_an_asynchronous_upload_that_fails_fails_the_worker(fit):
    def function():
        gone = Checkpoint.from_directory("/nowhere/at/all")
        ray.train.report({}, gone, checkpoint_upload_mode=CheckpointUploadMode.ASYNC)
        stay()

    with pytest.raises(ray.train.WorkerGroupError) as caught:
        fit(function, workers=1)
    assert isinstance(caught.value.worker_failures[0], FileNotFoundError)


def test_checkpoints_that_are_there_already(fit):
    def function():
        folder = ray.train.get_context().get_storage().experiment_fs_path
        place = os.path.join(folder, "mine", "deep")
        os.makedirs(place, exist_ok=True)
        with open(os.path.join(place, f"rank-{rank()}"), "w") as file:
            file.write("x")
        ray.train.report(
            {"n": 1},
            Checkpoint.from_directory(place),
            checkpoint_upload_mode=CheckpointUploadMode.NO_UPLOAD,
        )
        try:
            ray.train.report({}, saved("x"), checkpoint_upload_mode=CheckpointUploadMode.NO_UPLOAD)
        except ValueError as error:
            return str(error)

    result = fit(function)
    assert result.checkpoint.path == os.path.join(result.path, "mine", "deep")
    assert "run's folder" in result.return_value


def test_an_upload_of_ones_own(fit):
    def upload(checkpoint, name):
        storage = ray.train.get_context().get_storage()
        return storage.persist(checkpoint, f"own-{name}")

    def function():
        ray.train.report({"n": 1}, saved("x"), "name", checkpoint_upload_fn=upload)
        try:
            ray.train.report({}, saved("x"), checkpoint_upload_fn=lambda *_: saved("y"))
        except ValueError as error:
            return str(error)

    result = fit(function)
    assert os.path.basename(result.checkpoint.path) == "own-name"
    assert "checkpoint_upload_fn" in result.return_value


def test_reports_wait_for_all_ranks(fit, tmp_path):
    def function():
        for n in range(50):
            (tmp_path / f"{n}-{rank()}").touch()
            ray.train.report({"n": n})
            assert (tmp_path / f"{n}-{1 - rank()}").exists()

    fit(function)


def test_broadcasts_give_all_ranks_the_value_of_rank_zero(fit, tmp_path):
    class Thing:
        def __init__(self, value):
            self.value = value

    def function():
        values = [
            collective.broadcast_from_rank_zero(data)
            for data in ({"rank": rank()}, None if rank() == 0 else 5, bytes(5000))
        ]
        thing = collective.broadcast_from_rank_zero(Thing(rank()))
        for _ in range(100):
            collective.barrier()
        (tmp_path / str(rank())).write_text(repr((values[:2], len(values[2]), thing.value)))

    fit(function)
    for number in range(2):
        assert (tmp_path / str(number)).read_text() == "([{'rank': 0}, None], 5000, 0)"


def test_different_calls_at_the_same_time(fit):
    def function():
        collective.barrier() if rank() else ray.train.report({})

    with pytest.raises(ray.train.WorkerGroupError) as caught:
        fit(function)
    for failure in caught.value.worker_failures.values():
        assert "report() by rank 0; barrier() by rank 1" in str(failure)


def test_a_rank_that_never_comes(fit, monkeypatch):
    monkeypatch.setenv("RAY_TRAIN_COLLECTIVE_TIMEOUT_S", "0.3")

    def function():
        if rank() == 1:
            stay()
        ray.train.report({})

    with pytest.raises(ray.train.WorkerGroupError) as caught:
        fit(function)
    (failure,) = caught.value.worker_failures.values()
    assert isinstance(failure, TimeoutError)
    assert "Rank 1 did not come within 0.3 s" in str(failure)


def test_a_rank_that_returns_while_others_wait(fit):
    def function():
        if rank() == 1:
            return
        ray.train.report({})

    with pytest.raises(ray.train.WorkerGroupError) as caught:
        fit(function)
    (failure,) = caught.value.worker_failures.values()
    assert "The function of rank 1 has returned while others wait" in str(failure)


def test_get_all_reported_checkpoints_gives_up_in_time(fit, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def slow(checkpoint, name):
        # Opening the pipe waits until the other rank opens its end.
        pipe.open().close()
        return ray.train.get_context().get_storage().persist(checkpoint, name)

    def function():
        ray.train.report({}, saved("x"))
        if rank() == 0:
            ray.train.report({}, saved("x"), checkpoint_upload_mode=CheckpointUploadMode.SYNC)
            found = ray.train.get_all_reported_checkpoints(timeout_s=0.2)
            pipe.open("w").close()
            return len(found)
        ray.train.report({}, saved("x"), checkpoint_upload_fn=slow)

    assert fit(function).return_value == 1


def test_a_run_resumes_from_its_latest_checkpoint(fit):
    def function(config):
        before = ray.train.get_checkpoint()
        start = int(open(os.path.join(before.path, "x")).read()) + 1 if before else 0
        for n in range(start, start + 2):
            ray.train.report({"n": n}, saved(str(n), "x"))
        return start

    assert fit(function, name="again").return_value == 0
    result = fit(function, name="again")
    assert result.return_value == 2
    assert [metrics["n"] for _, metrics in result.best_checkpoints] == [0, 1, 2, 3]
    assert fit(function, name="other").return_value == 0
    with open(os.path.join(result.path, "checkpoint_manager_snapshot.json")) as file:
        assert json.load(file)["current_report_index"] == 4


def test_a_record_that_names_a_lost_checkpoint(fit):
    import shutil

    result = fit(lambda: ray.train.report({}, saved("x")), workers=1)
    shutil.rmtree(result.checkpoint.path)
    with pytest.raises(ray.exceptions.ActorDiedError, match="CheckpointManagerInitializationError"):
        fit(lambda: None, workers=1)


class Recorder(UserCallback):
    def __init__(self, path):
        self.path = path

    def after_report(self, run_context, metrics, checkpoint):
        with open(self.path, "a") as file:
            entry = [run_context.run_config.name, run_context.train_loop_config, metrics]
            print(json.dumps([*entry, checkpoint and os.path.basename(checkpoint.path)]), file=file)

    def after_exception(self, run_context, worker_exceptions):
        with open(self.path, "a") as file:
            found = {key: type(value).__name__ for key, value in worker_exceptions.items()}
            print(json.dumps([run_context.scaling_config.num_workers, found]), file=file)


def test_callbacks_hear_of_starts_reports_and_failures(fit, tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", "60")

    def function(config):
        ray.train.report({"r": rank()})
        ray.train.report({"r": rank()}, saved("x") if rank() == 1 else None, "named")
        collective.barrier()
        # Without the variable above, the failure of rank 0 would be told alone.
        time.sleep(rank())
        raise KeyError("x")

    path = tmp_path / "heard"
    with pytest.raises(ray.train.WorkerGroupError):
        fit(function, config={"a": 1}, name="heard", callbacks=[Recorder(str(path))])
    both = [{"r": 0}, {"r": 1}]
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        ["heard", {"a": 1}, both, None],
        ["heard", {"a": 1}, both, "named"],
        [2, {"0": "KeyError", "1": "KeyError"}],
    ]


def test_a_callback_that_raises_ends_the_run(fit):
    class Broken(UserCallback):
        def after_report(self, run_context, metrics, checkpoint):
            raise RuntimeError("a callback's own error")

    def function():
        ray.train.report({})
        stay()

    with pytest.raises(ray.train.ControllerError, match="a callback's own error"):
        fit(function, workers=1, callbacks=[Broken()])


def test_wrong_arguments(fit):
    def function():
        errors = []
        for arguments in (
            {"checkpoint": "/a/path"},
            {"checkpoint_upload_mode": "SYNC"},
            {"validation": True},
        ):
            try:
                ray.train.report({}, **arguments)
            except (ValueError, NotImplementedError) as error:
                errors.append(type(error).__name__)
        return errors

    expected = ["ValueError", "ValueError", "NotImplementedError"]
    assert fit(function, workers=1).return_value == expected
