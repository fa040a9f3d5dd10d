"""Which checkpoints a run keeps, in which order, and how a later run takes them over."""

import datetime
import errno
import fcntl
import json
import math
import os
import pathlib

import pytest

import ray
from ray.train import CheckpointConfig, ReportedCheckpointStatus
from ray.train.checkpoints import CheckpointManager
from ray.train.claim import FolderClaim
from ray.train.errors import CheckpointManagerInitializationError
from ray.train.storage import MARKER, SNAPSHOT, StorageContext

NAN = float("nan")


class Run:
    """A run's manager, with a directory made for each checkpoint that it registers."""

    def __init__(self, path, claims=False, **config):
        self.storage = StorageContext(str(path), "run")
        self.storage.make_marker()
        self.claim = FolderClaim(self.storage, 0.0) if claims else None
        self.manager = CheckpointManager(CheckpointConfig(**config), self.storage, self.claim)

    def report(self, name, **metrics):
        directory = self.storage.place(name)
        os.makedirs(directory, exist_ok=True)
        open(os.path.join(directory, "file"), "w").close()
        return self.manager.register(name, metrics, self.manager.report_index)

    def names(self):
        return [os.path.basename(one.checkpoint.path) for one in self.manager.results()]

    def on_disk(self):
        return sorted(set(os.listdir(self.storage.experiment_fs_path)) - {MARKER, SNAPSHOT})

    def snapshot(self):
        return json.loads(pathlib.Path(self.storage.place(SNAPSHOT)).read_text())


def test_without_attribute_by_time(tmp_path):
    run = Run(tmp_path, num_to_keep=2)
    assert run.report("a", loss=1) == [] and run.report("b", loss=0) == []
    assert run.report("c", loss=2) == ["a"]
    assert run.names() == ["b", "c"] == run.on_disk()
    assert run.manager.latest.metrics == {"loss": 2}
    assert run.manager.latest.status is ReportedCheckpointStatus.COMMITTED


def test_all_are_kept_by_default(tmp_path):
    run = Run(tmp_path)
    for name in "abc":
        run.report(name)
    assert run.names() == ["a", "b", "c"] == run.on_disk()
    assert len(run.manager.best()) == 3 and len(run.manager.best(2)) == 2


@pytest.mark.parametrize(
    "order, expected",
    [
        ("max", ["nan", "missing", "minus", "one", "two", "plus"]),
        ("min", ["nan", "missing", "plus", "two", "one", "minus"]),
    ],
)
def test_the_best_checkpoint_comes_last(tmp_path, order, expected):
    run = Run(tmp_path, checkpoint_score_attribute="loss", checkpoint_score_order=order)
    run.report("one", loss=1)
    run.report("missing", other=5)
    run.report("nan", loss=NAN)
    run.report("two", loss=2.0)
    run.report("minus", loss=-math.inf)
    run.report("plus", loss=math.inf)
    assert run.names() == expected


def test_equal_ones_are_in_the_order_of_time(tmp_path):
    run = Run(tmp_path, checkpoint_score_attribute="loss", num_to_keep=2)
    run.report("a", loss=1)
    run.report("b", loss=1)
    assert run.report("c", loss=1) == ["a"]
    assert run.names() == ["b", "c"]


def test_attribute_is_a_path_into_metrics(tmp_path):
    run = Run(tmp_path, checkpoint_score_attribute="eval/loss")
    run.report("a", eval={"loss": 2})
    run.report("b", **{"eval/loss": 1})
    run.report("c", eval={"loss": 3})
    assert run.names() == ["b", "a", "c"]


def test_the_latest_is_kept_although_it_is_the_worst(tmp_path):
    run = Run(tmp_path, checkpoint_score_attribute="loss", num_to_keep=2)
    run.report("a", loss=3)
    run.report("b", loss=2)
    assert run.report("c", loss=1) == []
    assert run.names() == ["c", "b", "a"] and run.on_disk() == ["a", "b", "c"]
    assert [one.metrics["loss"] for one in run.manager.best()] == [2, 3]
    assert run.report("d", loss=0) == ["c"]
    assert run.report("e", loss=4) == ["d", "b"]
    assert run.names() == ["a", "e"] and run.on_disk() == ["a", "e"]


def test_what_is_no_number_counts_as_the_worst_and_is_said(tmp_path, caplog):
    run = Run(tmp_path, checkpoint_score_attribute="loss")
    run.report("a", loss=1)
    run.report("b", loss="low")
    run.report("c", other=1, eval={"x": 2})
    assert run.names() == ["b", "c", "a"]
    assert "no number for the metric 'loss'" in caplog.text and "other, eval/x" in caplog.text


def test_a_name_that_is_used_again(tmp_path):
    """The old entry goes, but the directory stays, since it is the new checkpoint's."""
    run = Run(tmp_path, num_to_keep=1)
    run.report("latest", step=0)
    assert run.report("latest", step=1) == []
    assert run.names() == ["latest"] == run.on_disk()
    assert run.manager.latest.metrics == {"step": 1}
    assert run.report("other", step=2) == ["latest"]


def test_uploads_of_late_ranks_are_not_disturbed(tmp_path):
    run = Run(tmp_path)
    os.makedirs(run.storage.place("a"))
    part = pathlib.Path(run.storage.place("a"), "file.part-0123abcd")
    part.touch()
    run.manager.register("a", {}, 0, has_late=True)
    assert part.exists()
    run.manager.register("a", {}, 1)
    assert not part.exists()


def test_nested_checkpoints_do_not_delete_each_other(tmp_path):
    run = Run(tmp_path, num_to_keep=1)
    run.report("a")
    run.report("a/b")
    assert run.on_disk() == ["a"] and os.path.exists(run.storage.place("a/b/file"))


def test_a_directory_that_cannot_be_deleted_is_said(tmp_path, monkeypatch, caplog):
    run = Run(tmp_path, num_to_keep=1)
    run.report("a")

    def fail(self, name):
        raise PermissionError(13, "no")

    monkeypatch.setattr(StorageContext, "delete", fail)
    assert run.report("b") == ["a"] and run.names() == ["b"]
    assert "cannot be deleted" in caplog.text


def test_the_record_is_written_before_anything_is_deleted(tmp_path, monkeypatch):
    run = Run(tmp_path, num_to_keep=1)
    run.report("a")
    seen = []

    def delete(self, name):
        seen.append((name, run.snapshot()["latest_checkpoint_result"]["checkpoint_dir_name"]))

    monkeypatch.setattr(StorageContext, "delete", delete)
    run.report("b")
    assert seen == [("a", "b")]


def test_keys_and_values_of_the_record(tmp_path):
    run = Run(tmp_path, checkpoint_score_attribute="loss", num_to_keep=2)
    run.report("a", loss=2)
    run.manager.advance(1)
    run.report("b", loss=1.5, deep={"x": (1, 2)}, bad=NAN, text="ä")
    assert run.snapshot() == {
        "ray_version": ray.__version__,
        "checkpoint_results": [
            {
                "version": 0,
                "checkpoint_dir_name": "b",
                "metrics": {"loss": 1.5, "deep": {"x": [1, 2]}, "bad": None, "text": "ä"},
            },
            {"version": 0, "checkpoint_dir_name": "a", "metrics": {"loss": 2}},
        ],
        "checkpoint_report_indices": [2, 0],
        "latest_checkpoint_result": {
            "version": 0,
            "checkpoint_dir_name": "b",
            "metrics": {"loss": 1.5, "deep": {"x": [1, 2]}, "bad": None, "text": "ä"},
        },
        "pending_training_results": [],
        "pending_validation_specs": [],
        "current_report_index": 3,
        "validated_checkpoint_dir_names": [],
        "timed_out_validation_checkpoint_dir_names": [],
        "failed_validation_checkpoint_dir_names": [],
    }


def test_values_that_json_lacks(tmp_path):
    run = Run(tmp_path)
    values = {
        "day": datetime.date(2026, 11, 26),
        "path": pathlib.Path("/x"),
        "set": {1},
        "keys": {1: "a"},
    }
    run.report("a", **values)
    assert run.manager.latest.metrics == values
    assert run.snapshot()["latest_checkpoint_result"]["metrics"] == {
        "day": "2026-11-26",
        "path": "/x",
        "set": "{1}",
        "keys": {"1": "a"},
    }


def test_values_of_numpy(tmp_path):
    numpy = pytest.importorskip("numpy")
    run = Run(tmp_path, checkpoint_score_attribute="loss")
    run.report("b", loss=numpy.float32(1.5), array=numpy.arange(3), flag=numpy.bool_(True))
    run.report("a", loss=numpy.float64(0.5))
    assert run.names() == ["a", "b"]
    assert run.snapshot()["checkpoint_results"][1]["metrics"] == {
        "loss": 1.5,
        "array": [0, 1, 2],
        "flag": True,
    }


def test_a_later_run_goes_on(tmp_path, caplog):
    caplog.set_level("INFO")
    first = Run(tmp_path, checkpoint_score_attribute="loss", num_to_keep=3)
    for name, loss in (("a", 3), ("b", 1), ("c", 2)):
        first.report(name, loss=loss)
    first.manager.advance(3)
    second = Run(tmp_path, checkpoint_score_attribute="loss", num_to_keep=3)
    assert second.manager.load() is True
    assert second.names() == ["b", "c", "a"]
    assert second.manager.latest.metrics == {"loss": 2}
    assert second.manager.report_index == 3  # Reports without a checkpoint are in no record.
    assert "another RunConfig(name=...)" in caplog.text
    assert second.report("d", loss=2.5) == ["b"]
    assert second.names() == ["c", "d", "a"] == [*second.names()]
    assert second.snapshot()["checkpoint_report_indices"] == [2, 3, 0]


def test_a_later_run_may_rank_by_another_metric(tmp_path):
    first = Run(tmp_path)
    first.report("a", loss=1, accuracy=9)
    first.report("b", loss=2, accuracy=8)
    second = Run(tmp_path, checkpoint_score_attribute="accuracy")
    second.manager.load()
    assert second.names() == ["b", "a"]


def test_a_fresh_run_has_nothing(tmp_path):
    run = Run(tmp_path)
    assert run.manager.load() is False
    assert run.manager.latest is None and run.manager.results() == [] == run.manager.best()
    assert run.manager.report_index == 0


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: "{",
        lambda text: "[]",
        lambda text: "{}",
        lambda text: text.replace('"a"', '"gone"', 1),
        lambda text: text.replace(
            '"checkpoint_report_indices":[0]', '"checkpoint_report_indices":[]'
        ),
        lambda text: text.replace('"current_report_index":1', '"current_report_index":null'),
        lambda text: text.replace('"metrics":{}', '"metrics":5'),
    ],
)
def test_a_record_that_cannot_be_used(tmp_path, damage):
    run = Run(tmp_path)
    run.report("a")
    text = run.storage.read_snapshot()
    assert damage(text) != text
    run.storage.write_snapshot(damage(text))
    with pytest.raises(CheckpointManagerInitializationError, match=SNAPSHOT):
        Run(tmp_path).manager.load()


def test_a_record_with_too_few_indices(tmp_path):
    run = Run(tmp_path)
    run.report("a")
    run.report("b")
    text = (
        run.storage.read_snapshot()
        .replace("[0,1]", "[1]")
        .replace(
            '"latest_checkpoint_result":{"version":0,"checkpoint_dir_name":"b","metrics":{}}',
            '"latest_checkpoint_result":null',
        )
    )
    run.storage.write_snapshot(text)
    with pytest.raises(CheckpointManagerInitializationError, match="2 checkpoints and 1 report"):
        Run(tmp_path).manager.load()


def test_a_record_in_no_encoding(tmp_path):
    run = Run(tmp_path)
    pathlib.Path(run.storage.place(SNAPSHOT)).write_bytes(b"\xff\xfe")
    with pytest.raises(CheckpointManagerInitializationError, match="cannot be read"):
        run.manager.load()


def test_a_checkpoint_that_vanished(tmp_path):
    run = Run(tmp_path)
    run.report("a")
    run.report("b")
    run.storage.delete("a")
    with pytest.raises(CheckpointManagerInitializationError, match="not there: a"):
        Run(tmp_path).manager.load()


def test_remains_of_killed_processes_go(tmp_path):
    run = Run(tmp_path)
    os.makedirs(run.storage.place("a"))
    part = os.path.join(run.storage.place("a"), "model.part-0123abcd")
    open(part, "w").close()
    run.report("a")
    assert not os.path.exists(part)
    part = run.storage.place(f"{SNAPSHOT}.part-0123abcd")
    open(part, "w").close()
    Run(tmp_path).manager.load()
    assert not os.path.exists(part)


def test_foreign_files_stay(tmp_path):
    run = Run(tmp_path, num_to_keep=1)
    foreign = run.storage.place("rank0_memory_profile.html")
    pathlib.Path(foreign).write_text("page")
    run.report("a")
    run.report("b")
    Run(tmp_path).manager.load()
    assert run.on_disk() == ["b", "rank0_memory_profile.html"]


def test_a_second_run_leaves_what_the_first_one_has(tmp_path, caplog):
    first = Run(tmp_path, claims=True)
    first.manager.load()
    first.report("a")
    os.makedirs(first.storage.place("b"))
    # One of its ranks is uploading.
    open(first.storage.place(".unfinished-b"), "w").close()
    second = Run(tmp_path, claims=True, num_to_keep=1)
    assert second.manager.load() is True
    assert "Another run with the name of this one is under way" in caplog.text
    assert first.on_disk() == [".unfinished-b", "a", "b"]
    with pytest.raises(RuntimeError, match="Give each run a RunConfig"):
        second.report("c")
    first.report("b")
    assert first.names() == ["a", "b"] and first.on_disk() == ["a", "b", "c"]
    # The folder is free once the process ends, which close() stands for.
    first.claim.close()
    third = Run(tmp_path, claims=True)
    assert third.manager.load() is True and third.names() == ["a", "b"]


def test_a_second_run_where_there_are_no_locks_deletes_nothing(tmp_path, monkeypatch):
    def no_locks(file, operation):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    first = Run(tmp_path, claims=True)
    first.manager.load()
    os.makedirs(first.storage.place("a"))
    # One of its ranks is uploading.
    open(first.storage.place(".unfinished-a"), "w").close()
    Run(tmp_path, claims=True).manager.load()
    assert first.on_disk() == [".unfinished-a", "a"]


def test_a_second_run_where_there_are_no_locks(tmp_path):
    runs = [Run(tmp_path), Run(tmp_path)]
    for run in runs:
        run.manager.load()
    runs[0].report("a")
    with pytest.raises(RuntimeError, match="its own last one is not registered"):
        runs[1].report("b")
    runs[0].report("c")
    assert runs[0].snapshot()["checkpoint_report_indices"] == [0, 1]
