"""Publishes the record of a run in the head's key-value store, for the dashboard and rayctl.

The head reads it there (observability/state/train_runs.h). A run that ends without its controller
stays in the store as it was: the reader asks whether the controller lives.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any, Callable

from ray import _raylet
from ray.train.profiles.store import PROFILES
from ray.train.progress import Progress
from ray.train.state import RUN_ENDED

logger = logging.getLogger("ray.train")

# The namespaces of the store. The keys in them are ids of runs.
RUNS, METRICS = b"train_runs", b"train_metrics"
# Written by `rayctl train tensorboard` (observability/state/train_profiles.h).
VIEWERS = b"train_tensorboards"
# So many seconds lie at least between two records of a run, and between two records of what it
# reports. Runs with thousands of workers have large records; these are written only as often as
# this number of bytes a second allows.
_INTERVAL_S, _METRICS_INTERVAL_S = 0.3, 1.0
_BYTES_PER_S = 1 << 20
# The store keeps at most so many runs.
MOST_RUNS = 100
# So many attempts of a run are published, and so many of them with their workers.
_MOST_ATTEMPTS, _MOST_WITH_WORKERS = 20, 5
_MOST_CHARACTERS = 2000
# The number of this state in list_actors().
_DEAD = 3


def published(record: dict[str, Any]) -> dict[str, Any]:
    """Returns the part of RunRecord.to_dict() that is published: a few KB for a run of a few
    workers."""
    attempts = record["attempts"][-_MOST_ATTEMPTS:]
    for attempt in attempts[:-_MOST_WITH_WORKERS]:
        attempt["workers"] = []
    return _cut({**record, "attempts": attempts})


def _cut(value: Any) -> Any:
    """Returns the same value with long texts cut."""
    if isinstance(value, dict):
        return {key: _cut(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_cut(item) for item in value]
    if isinstance(value, str) and len(value) > _MOST_CHARACTERS:
        return value[:_MOST_CHARACTERS] + "…"
    return value


def remove_oldest(
    keep: int,
    store: Any,
    is_alive: Callable[[str], bool] | None = None,
) -> None:
    """Removes the oldest runs that have ended, so that at most `keep` stay, if so many have ended.

    is_alive: whether the controller with this actor id lives; by default the head is asked.
    """
    keys = store.kv_list(RUNS, b"")
    if len(keys) <= keep:
        return
    runs = []
    for key in keys:
        text = store.kv_get(RUNS, key)
        if text is not None:
            runs.append((_parsed(text), key))
    runs.sort(key=lambda pair: pair[0].get("start_time_ns") or 0)
    if is_alive is None:
        living = {
            actor["actor_id"].hex() for actor in store.list_actors(True) if actor["state"] != _DEAD
        }
        is_alive = living.__contains__
    surplus = len(runs) - keep
    for run, key in runs:
        if surplus <= 0:
            return
        if run.get("status") in RUN_ENDED or not is_alive(run.get("controller_actor_id") or ""):
            store.kv_delete(RUNS, key)
            store.kv_delete(METRICS, key)
            store.kv_delete(PROFILES, key)
            store.kv_delete(VIEWERS, key)
            surplus -= 1


def _parsed(text: bytes) -> dict:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {}


class _Slot:
    """One value of the store: written in a thread, at most once an interval, the last one always.

    All methods run in the event loop. make() returns the value, and is called there.
    """

    def __init__(self, space: bytes, key: bytes, interval_s: float, make: Callable[[], Any]):
        self._space, self._key, self._make = space, key, make
        self._interval_s = interval_s
        # When the value may be written again, in the loop's time.
        self._next = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task | None = None
        self._dirty = False

    def change(self) -> None:
        """Notes that the value has changed, so that it will be written."""
        if self._dirty:
            return
        self._dirty = True
        if self._writing is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(self._next, loop.time()), self._begin)

    async def finish(self) -> None:
        """Returns once the last value is written."""
        while self._dirty or self._writing is not None:
            if self._writing is None:
                self._timer.cancel()
                self._begin()
            await self._writing

    def _begin(self) -> None:
        self._writing = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        self._dirty = False
        try:
            value = self._make()
            size = await loop.run_in_executor(None, self._put, value)
        except Exception as error:
            # The error is only logged, because a run is worth more than its record.
            logger.debug("The record of the run could not be written: %s", error)
            size = 0
        self._writing = None
        self._next = loop.time() + max(self._interval_s, size / _BYTES_PER_S)
        if self._dirty:
            self._timer = loop.call_at(self._next, self._begin)

    def _put(self, value: Any) -> int:
        text = json.dumps(value, default=str, separators=(",", ":")).encode()
        # The entry is persistent: it stays after the driver, as long as the cluster.
        _raylet.kv_put(self._space, self._key, text, True, True)
        return len(text)


class RecordWriter:
    """Publishes a RunRecord and what the run reports. All methods run in the event loop."""

    def __init__(self, run_id: str, record: Any):
        self._record = record
        self._version = -1  # The version of the record that was published last.
        self._progress = Progress()
        key = run_id.encode()
        self._run = _Slot(RUNS, key, _INTERVAL_S, lambda: published(record.to_dict()))
        self._metrics = _Slot(METRICS, key, _METRICS_INTERVAL_S, self._progress.to_dict)

    def look(self) -> None:
        """Publishes the record if it has changed."""
        version = self._record.version
        if version == self._version:
            return
        if self._version < 0:
            # Old runs are removed only now, so that a run that cannot begin costs no other run its
            # record.
            asyncio.get_running_loop().run_in_executor(None, _make_room)
        self._version = version
        self._run.change()

    def reported(self, reports: tuple) -> None:
        """All ranks have made this report; reports: their TrainingReports, by rank.

        It costs a microsecond: the values are read when they are published.
        """
        self._progress.add(reports)
        self._metrics.change()

    async def finish(self) -> None:
        """Returns once the last state of the record is published."""
        await asyncio.gather(self._metrics.finish(), self._run.finish())


def _make_room() -> None:
    try:
        if len(_raylet.kv_list(RUNS, b"")) >= MOST_RUNS:
            # A tenth of the runs goes at a time, so that most runs need not read the others.
            remove_oldest(MOST_RUNS * 9 // 10, _raylet)
    except Exception as error:
        logger.debug("The records of old runs could not be removed: %s", error)
