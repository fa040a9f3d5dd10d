"""The seconds that a rank has spent waiting, as metrics of its process."""

from __future__ import annotations

import threading
import time
from typing import Callable

from ray.train.step_times import StepTimes
from ray.util.metrics import Gauge

# Maps the name of a metric to its description. The first three are Ray's.
REPORT = "train_report_total_blocked_time_s"
SYNC = "train_checkpoint_sync_total_time_s"
TRANSFER = "train_checkpoint_transfer_total_time_s"
COLLECTIVE = "train_collective_total_blocked_time_s"
DATA = "train_data_total_wait_time_s"
_DESCRIPTIONS = {
    REPORT: "Seconds that this rank has spent in report().",
    SYNC: "Seconds of report() in which this rank waited for the others.",
    TRANSFER: "Seconds in which this rank has uploaded checkpoints.",
    COLLECTIVE: "Seconds in which this rank has waited in ray.train.collective.",
    DATA: "Seconds in which this rank has waited for batches of prepare_data_loader().",
}
# The names of these sums in the records of runs.
_SHORT = {
    REPORT: "report_s",
    SYNC: "sync_s",
    TRANSFER: "transfer_s",
    COLLECTIVE: "collective_s",
    DATA: "data_s",
}
# The names of these sums in the traces of profiles.
SPANS = {
    REPORT: "report",
    SYNC: "report: wait for ranks",
    TRANSFER: "checkpoint upload",
    COLLECTIVE: "collective",
    DATA: "data loader",
}
TAGS = (
    "ray_train_run_name",
    "ray_train_run_id",
    "ray_train_worker_world_rank",
    "ray_train_worker_actor_id",
)


class Times:
    """Sums of one rank. Each kind is added to by one thread at a time.

    tags: values of TAGS, or None when the sums are not to be metrics.
    """

    def __init__(self, tags: dict[str, str] | None):
        self._tags = tags
        self._sums: dict[str, float] = {}
        self._recorders: dict[str, Callable[[float], None]] = {}
        self.steps = StepTimes(tags)
        # While a profile is recorded, this has (name, end in ns since the epoch, seconds, thread)
        # of each wait that has ended.
        self.spans: list[tuple[str, int, float, int]] | None = None

    def add(self, kind: str, seconds: float) -> None:
        """Adds to a sum the seconds of a wait that has just ended in the calling thread."""
        spans = self.spans
        if spans is not None:
            spans.append((SPANS[kind], time.time_ns(), seconds, threading.get_ident()))
        total = self._sums[kind] = self._sums.get(kind, 0.0) + seconds
        if self._tags is None:
            return
        record = self._recorders.get(kind)
        if record is None:
            gauge = Gauge(kind, _DESCRIPTIONS[kind], TAGS).set_default_tags(self._tags)
            record = self._recorders[kind] = gauge._recorder()
        record(total)

    def to_dict(self) -> dict[str, float]:
        """Returns the sums so far in seconds, rounded to microseconds, with short names; and the
        steps."""
        sums = {_SHORT[kind]: round(total, 6) for kind, total in self._sums.items()}
        return {**sums, **self.steps.to_dict()}
