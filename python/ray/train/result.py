"""Result: how a run ended."""

from __future__ import annotations

import dataclasses
import math
import os
from typing import Any

from ray.train import metric_path, snapshot
from ray.train.checkpoint import Checkpoint
from ray.train.errors import CheckpointManagerInitializationError, TrainingFailedError
from ray.train.filesystem import LOCAL, operations, resolve
from ray.train.optional import require
from ray.train.public import public
from ray.train.storage import SNAPSHOT, StorageContext


@public
@dataclasses.dataclass(repr=False)
class Result:
    """The end of a run, as fit() returns it, or as it is read from the run's folder.

    metrics, checkpoint: those of the latest report with a checkpoint; None without any.
    error: always None, since fit() raises.
    path: the run's folder, without the scheme of a URI; None in local mode.
    best_checkpoints: (checkpoint, metrics) pairs, the best one last; at most num_to_keep.
    return_value: of the function on rank 0.
    """

    metrics: dict[str, Any] | None
    checkpoint: Checkpoint | None
    error: TrainingFailedError | None
    path: str | None
    best_checkpoints: list[tuple[Checkpoint, dict[str, Any]]] | None = None
    _storage_filesystem: Any = None
    return_value: Any = None

    def __repr__(self):
        rows = len(self.best_checkpoints or ())
        # Making the frame needs pandas, which may be missing.
        frame = f"<table of {rows} rows>" if rows else "None"
        return (
            f"Result(metrics={self.metrics!r}, checkpoint={self.checkpoint!r}, "
            f"error={self.error!r}, path={self.path!r}, metrics_dataframe={frame}, "
            f"best_checkpoints={self.best_checkpoints!r}, "
            f"_storage_filesystem={self._storage_filesystem!r}, "
            f"return_value={self.return_value!r})"
        )

    @property
    def filesystem(self) -> Any:
        """The file system of `path`: the object that the user gave, or a LocalFileSystem."""
        return LOCAL if self._storage_filesystem is None else self._storage_filesystem

    @property
    def metrics_dataframe(self) -> Any:
        """The metrics of best_checkpoints as a pandas.DataFrame, a row each; None without any.

        Raises ImportError if pandas is not installed.
        """
        if not self.best_checkpoints:
            return None
        pandas = require("pandas", "Result.metrics_dataframe")
        return pandas.DataFrame([metrics for _, metrics in self.best_checkpoints])

    @property
    def config(self) -> None:
        raise DeprecationWarning(
            "Result.config belonged to hyperparameter search. The train_loop_config is what was "
            "given to the trainer."
        )

    def get_best_checkpoint(self, metric: str, mode: str) -> Checkpoint:
        """The checkpoint of best_checkpoints with the best value of a metric.

        metric: its name, "a/b" for one inside another dict. mode: "max" or "min", else ValueError.
        Raises RuntimeError if there is no checkpoint, or none with such a number.
        """
        if mode not in ("max", "min"):
            raise ValueError(f'get_best_checkpoint(mode={mode!r}): it must be "max" or "min".')
        if not self.best_checkpoints:
            raise RuntimeError("The run has reported no checkpoint, so there is no best one.")
        scored = []
        for checkpoint, metrics in self.best_checkpoints:
            value = metric_path.look_up(metrics, metric)
            if _is_number(value):
                scored.append((float(value), checkpoint))
        if not scored:
            names = sorted(
                {name for _, m in self.best_checkpoints for name in metric_path.names(m)}
            )
            raise RuntimeError(
                f"No checkpoint has a number for the metric {metric!r}. There are: "
                f"{', '.join(names) or 'none'}."
            )
        # NaN compares with nothing, so it is the best only where there is nothing else.
        ranked = [pair for pair in scored if not math.isnan(pair[0])] or scored
        best = max if mode == "max" else min
        return best(ranked, key=lambda pair: pair[0])[1]

    @classmethod
    def from_path(cls, path: str | os.PathLike, storage_filesystem: Any = None) -> Result:
        """Reads the end of a run from its folder: a path, a URI, or a path in the file system.

        The latest checkpoint is always listed. There is no error and no return value. Raises
        RuntimeError if there is no such folder, or no record of checkpoints in it, and
        CheckpointManagerInitializationError if the record cannot be read.
        """
        filesystem, folder = resolve(path, storage_filesystem)
        parent, _, name = folder.rpartition("/")
        storage = StorageContext(parent or "/", name, filesystem)
        if operations(filesystem).kind(folder) != "directory":
            raise RuntimeError(f"There is no folder {folder} of a run.")
        try:
            text = storage.read_snapshot()
            found = None if text is None else snapshot.from_text(text)
        except ValueError as error:
            raise CheckpointManagerInitializationError(
                f"{folder}/{SNAPSHOT} cannot be read: {error}."
            ) from error
        if found is None:
            raise RuntimeError(
                f"The folder {folder} has no {SNAPSHOT}: it is no run's folder, or its run has "
                "reported no checkpoint."
            )
        latest = found.latest
        return cls(
            metrics=None if latest is None else latest.metrics,
            checkpoint=None if latest is None else storage.checkpoint_at(latest.dir_name),
            error=None,
            path=folder,
            best_checkpoints=[
                (storage.checkpoint_at(entry.dir_name), entry.metrics) for entry in found.entries
            ],
            _storage_filesystem=filesystem,
        )


def _is_number(value: Any) -> bool:
    if value is metric_path.MISSING or isinstance(value, (str, bytes)):
        return False
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
