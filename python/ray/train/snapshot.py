"""The record of a run's checkpoints as it lies in the run's folder: JSON with the keys of Ray's."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import os
from typing import Any

import ray

_RESULT_VERSION = 0


# Compared by identity, since metrics may hold arrays, whose comparison has no truth value.
@dataclasses.dataclass(eq=False)
class Entry:
    """A registered checkpoint.

    dir_name: its directory, relative to the run's folder. report_index: 0 for a run's first report.
    """

    dir_name: str
    metrics: dict[str, Any]
    report_index: int


@dataclasses.dataclass(eq=False)
class Snapshot:
    """The checkpoints of a run in the manager's order, which of them is the latest, and how many
    reports the run has made."""

    entries: list[Entry]
    latest: Entry | None
    report_index: int


def to_text(snapshot: Snapshot) -> str:
    """The snapshot as JSON.

    Values of metrics that JSON lacks are written as what is nearest: NaN and infinities as null,
    tuples as lists, numbers of NumPy as numbers, anything else as its repr().
    """
    latest = snapshot.latest
    fields = {
        "ray_version": ray.__version__,
        "checkpoint_results": [_result(entry) for entry in snapshot.entries],
        "checkpoint_report_indices": [entry.report_index for entry in snapshot.entries],
        "latest_checkpoint_result": None if latest is None else _result(latest),
        "pending_training_results": [],
        "pending_validation_specs": [],
        "current_report_index": snapshot.report_index,
        "validated_checkpoint_dir_names": [],
        "timed_out_validation_checkpoint_dir_names": [],
        "failed_validation_checkpoint_dir_names": [],
    }
    return json.dumps(fields, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def from_text(text: str) -> Snapshot:
    """Reads what to_text() or Ray wrote; raises ValueError that says what is wrong with it."""
    fields = json.loads(text)
    try:
        results = fields["checkpoint_results"]
        indices = fields["checkpoint_report_indices"]
        latest = fields["latest_checkpoint_result"]
        report_index = fields["current_report_index"]
        names = [result["checkpoint_dir_name"] for result in results]
        entries = [
            Entry(str(name), dict(result["metrics"]), int(index))
            for name, result, index in zip(names, results, indices)
        ]
        latest_name = None if latest is None else latest["checkpoint_dir_name"]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"it lacks, or has in another form, {error}") from error
    if len(indices) != len(results):
        raise ValueError(f"it has {len(results)} checkpoints and {len(indices)} report indices")
    if not isinstance(report_index, int):
        raise ValueError(f"its current_report_index is {report_index!r}")
    by_name = {entry.dir_name: entry for entry in entries}
    if latest_name is not None and latest_name not in by_name:
        raise ValueError(f"its latest checkpoint, {latest_name!r}, is not among its checkpoints")
    return Snapshot(entries, by_name.get(latest_name), report_index)


def _result(entry: Entry) -> dict[str, Any]:
    return {
        "version": _RESULT_VERSION,
        "checkpoint_dir_name": entry.dir_name,
        "metrics": _plain(entry.metrics),
    }


def _plain(value: Any) -> Any:
    """The value in types that JSON has."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)  # Not the subclass: an IntEnum would be written by its name.
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): _plain(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    # Numbers and arrays of NumPy; tolist() gives Python's own types, or the object once more.
    if hasattr(value, "dtype") and callable(getattr(value, "tolist", None)):
        converted = value.tolist()
        return repr(value) if type(converted) is type(value) else _plain(converted)
    return repr(value)
