"""The record of a run's checkpoints as it lies in the run's folder: JSON with the keys of Ray's."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import os
import re
from typing import Any

import ray

_RESULT_VERSION = 0
_SURROGATES = re.compile("[\ud800-\udfff]")
# Metrics that are nested deeper are written as their repr(), because other readers use recursion.
_MOST_DEPTH = 50
# Python refuses to write longer numbers in decimals.
_MOST_BITS = 10_000


# Entries are compared by identity, since metrics may hold arrays, whose comparison has no truth
# value.
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
    """The checkpoints of a run in the manager's order, the latest of them, and how many reports the
    run has made."""

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
    text = json.dumps(fields, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    if text.isascii() or not _SURROGATES.search(text):
        return text
    # The text stays ASCII: no encoding has lone surrogates, which os.fsdecode() makes of
    # undecodable bytes in a name.
    return json.dumps(fields, allow_nan=False, separators=(",", ":"))


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


def _plain(value: Any, around: tuple[int, ...] = ()) -> Any:
    """Returns the value in types that JSON has. around: the ids of the dicts and lists that contain
    it."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        if value.bit_length() > _MOST_BITS:
            return _text(hex, value)
        # A plain int, since an IntEnum would be written by its name.
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, (dict, list, tuple)):
        if len(around) >= _MOST_DEPTH or id(value) in around:
            return _text(repr, value)
        around += (id(value),)
        if not isinstance(value, dict):
            return [_plain(item, around) for item in value]
        return {
            key if isinstance(key, str) else _text(str, key): _plain(item, around)
            for key, item in value.items()
        }
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, os.PathLike):
        return _text(os.fspath, value)
    # tolist() of NumPy's numbers and arrays returns Python's own types, or the object itself.
    if hasattr(value, "dtype") and callable(getattr(value, "tolist", None)):
        converted = value.tolist()
        return _text(repr, value) if type(converted) is type(value) else _plain(converted, around)
    return _text(repr, value)


def _text(make: Any, value: Any) -> str:
    """Returns make(value). The value's class may be a user's, and what fails there must not fail
    the run."""
    try:
        return str(make(value))
    except Exception as error:
        return f"<{type(value).__name__}, of which no text can be had: {type(error).__name__}>"
