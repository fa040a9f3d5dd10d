"""The record of a run's profiles in the head's key-value store, for the page and rayctl."""

from __future__ import annotations

import json
import logging
import os
import shutil
from typing import Any

from ray import _raylet
from ray.train import logs

logger = logging.getLogger("ray.train")

# The namespace. Its keys are ids of runs, its values lists of records as JSON, the newest last.
PROFILES = b"train_profiles"
# The store has at most so many profiles of a run, and so many bytes of all of them: the oldest lose
# their details first. The files of a profile keep everything.
_MOST_PROFILES, _MOST_BYTES = 20, 2 << 20
# So many merged traces of a run are kept among the logs of the controller's node, for the page.
_MOST_LOGS = 5


def publish(run_id: str, records: list[dict]) -> None:
    """Writes the records of a run. Errors are only logged, because a profile is worth more than its
    record."""
    try:
        # The entry is persistent, as in records.py, so that it outlives the driver.
        _raylet.kv_put(PROFILES, run_id.encode(), bounded(records), True, True)
    except Exception as error:
        logger.debug("The record of profiles could not be written: %s", error)


def bounded(records: list[dict], most_bytes: int = _MOST_BYTES) -> bytes:
    """Returns the records as JSON of bounded size."""
    kept = [dict(one) for one in records[-_MOST_PROFILES:]]
    text = _packed(kept)
    for shorten in (_without_memory, _without_steps):
        for one in kept:
            if len(text) <= most_bytes:
                return text
            shorten(one)
            text = _packed(kept)
    while len(text) > most_bytes and kept:
        del kept[0]
        text = _packed(kept)
    return text


def _packed(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _without_memory(record: dict) -> None:
    record["memory"] = {}


def _without_steps(record: dict) -> None:
    summary = record.get("summary")
    if summary:
        ranks = [{**rank, "steps": []} for rank in summary["ranks"]]
        record["summary"] = {**summary, "ranks": ranks}


def keep_trace(run_id: str, profile_id: str, path: str) -> str | None:
    """Copies a merged trace to the logs of this node; returns its name there, or None if that
    fails."""
    name = f"{run_id}_{profile_id}.trace.json.gz"
    directory = logs.directory()
    try:
        os.makedirs(directory, exist_ok=True)
        older = sorted(
            one
            for one in os.listdir(directory)
            if one.startswith(f"{run_id}_profile_") and one.endswith(".trace.json.gz")
        )
        for one in older[: max(0, len(older) + 1 - _MOST_LOGS)]:
            os.unlink(os.path.join(directory, one))
        shutil.copyfile(path, os.path.join(directory, name))
    except OSError as error:
        logger.warning("The trace %s could not be copied to the logs: %s", path, error)
        return None
    return f"train/{name}"
