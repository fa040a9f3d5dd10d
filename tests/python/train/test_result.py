"""Result: the best checkpoint, how it is read from a run's folder, and how it describes itself."""

import json
import os
import pathlib
import pickle
import sys

import pytest

from ray.train import Checkpoint, Result
from ray.train.checkpoints import CheckpointManager
from ray.train.config import CheckpointConfig
from ray.train.errors import CheckpointManagerInitializationError
from ray.train.storage import SNAPSHOT, StorageContext

NAN = float("nan")


def result(**changes):
    fields = {"metrics": None, "checkpoint": None, "error": None, "path": "/run"}
    return Result(**{**fields, **changes})


def with_metrics(*metrics):
    pairs = [(Checkpoint(f"/run/{index}"), one) for index, one in enumerate(metrics)]
    return result(best_checkpoints=pairs)


@pytest.mark.parametrize(
    "metric, mode, place",
    [
        ("loss", "max", "/run/1"),
        ("loss", "min", "/run/0"),
        ("deep/x", "max", "/run/2"),
        ("deep/x", "min", "/run/0"),
        ("sometimes", "max", "/run/2"),
        ("broken", "max", "/run/0"),
    ],
)
def test_get_best_checkpoint(metric, mode, place):
    found = with_metrics(
        {"loss": 1, "deep": {"x": 1}, "broken": NAN},
        {"loss": 3, "sometimes": NAN},
        {"loss": 2, "deep": {"x": 7}, "sometimes": 5},
    )
    assert found.get_best_checkpoint(metric, mode).path == place


def test_no_best_checkpoint():
    with pytest.raises(ValueError, match="mode"):
        with_metrics({"loss": 1}).get_best_checkpoint("loss", "best")
    with pytest.raises(RuntimeError, match="no checkpoint"):
        result().get_best_checkpoint("loss", "max")
    for metric in ("other", "deep", "name"):
        with pytest.raises(RuntimeError, match="There are: deep/x, loss, name"):
            with_metrics({"loss": 1, "deep": {"x": 1}, "name": "a"}).get_best_checkpoint(
                metric, "max"
            )


def test_the_removed_attribute_config_says_so():
    with pytest.raises(DeprecationWarning, match="config"):
        result().config


def test_representation_shows_all():
    text = repr(with_metrics({"loss": 1}))
    for name in (
        "metrics checkpoint error path metrics_dataframe best_checkpoints _storage_filesystem "
        "return_value"
    ).split():
        assert f"{name}=" in text
    assert "(Checkpoint(filesystem=local, path=/run/0), {'loss': 1})" in text
    assert "metrics_dataframe=None" in repr(result())


def test_pickles():
    found = with_metrics({"loss": 1})
    assert repr(pickle.loads(pickle.dumps(found))) == repr(found)
    assert found.filesystem.type_name == "local"


def test_metrics_dataframe_needs_pandas(monkeypatch):
    assert result(best_checkpoints=[]).metrics_dataframe is None
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="Result.metrics_dataframe needs the package 'pandas'"):
        with_metrics({"loss": 1}).metrics_dataframe


def test_metrics_dataframe():
    pytest.importorskip("pandas")
    frame = with_metrics({"loss": 1, "a": "x"}, {"loss": 2}).metrics_dataframe
    assert list(frame.columns) == ["loss", "a"] and list(frame["loss"]) == [1, 2]


def finished_run(tmp_path):
    storage = StorageContext(str(tmp_path), "run")
    storage.make_marker()
    manager = CheckpointManager(CheckpointConfig(1, "loss"), storage)
    for index, (name, loss) in enumerate((("a", 2), ("b", 1))):
        os.makedirs(storage.place(name))
        manager.register(name, {"loss": loss}, index)
    return storage


@pytest.mark.parametrize("given", ["{}/run", "{}/run/", "file://{}/run"])
def test_from_path(tmp_path, given):
    finished_run(tmp_path)
    found = Result.from_path(given.format(tmp_path))
    assert found.path == f"{tmp_path}/run" and found.error is None and found.return_value is None
    assert found.metrics == {"loss": 1} and found.checkpoint.path == f"{tmp_path}/run/b"
    assert [m for _, m in found.best_checkpoints] == [{"loss": 1}, {"loss": 2}]
    assert found.get_best_checkpoint("loss", "max").path == f"{tmp_path}/run/a"
    assert Result.from_path(tmp_path / "run").metrics == {"loss": 1}


def test_from_path_of_what_is_no_run(tmp_path):
    with pytest.raises(RuntimeError, match="no folder"):
        Result.from_path(tmp_path / "missing")
    with pytest.raises(RuntimeError, match=f"no {SNAPSHOT}"):
        Result.from_path(tmp_path)
    (tmp_path / SNAPSHOT).write_text("{")
    with pytest.raises(CheckpointManagerInitializationError, match="cannot be read"):
        Result.from_path(tmp_path)


def test_from_path_reads_what_ray_wrote(tmp_path):
    """Reads the record of a run of Ray 2.60 (its metrics had a NaN), as it lay on the disk."""
    (tmp_path / "c1").mkdir()
    one = {"version": 0, "checkpoint_dir_name": "c1", "metrics": {"loss": None, "arr": [1, [2]]}}
    record = {
        "ray_version": "2.60.0",
        "checkpoint_results": [one],
        "checkpoint_report_indices": [4],
        "latest_checkpoint_result": one,
        "pending_training_results": [],
        "pending_validation_specs": [],
        "current_report_index": 6,
        "validated_checkpoint_dir_names": [],
        "timed_out_validation_checkpoint_dir_names": [],
        "failed_validation_checkpoint_dir_names": [],
    }
    pathlib.Path(tmp_path / SNAPSHOT).write_text(json.dumps(record))
    found = Result.from_path(tmp_path)
    assert found.metrics == {"loss": None, "arr": [1, [2]]}
    assert found.checkpoint.path == str(tmp_path / "c1")
