"""Records of a run, its attempts and its workers, as the HTTP interface shows them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from ray.train.ranks import WorkerInfo

# Besides the newest attempts of a run, only so many are kept, so that a run that fails for days
# still has a small record.
_MOST_ATTEMPTS = 100
RUN_ENDED = ("FINISHED", "ERRORED", "ABORTED")


def _gpu(gpu_id: str) -> dict[str, Any]:
    """Describes a GPU that a worker was given. Ray's fields that have to be measured are absent."""
    is_index = gpu_id.isdigit()
    return {"index": int(gpu_id) if is_index else None, "uuid": None if is_index else gpu_id}


@dataclass
class WorkerRecord:
    """One rank of an attempt. status: ALIVE or DEAD."""

    info: WorkerInfo
    resources: dict[str, float]
    status: str = "ALIVE"

    def to_dict(self) -> dict[str, Any]:
        info = self.info
        return {
            "world_rank": info.rank,
            "local_rank": info.local_rank,
            "node_rank": info.node_rank,
            "actor_id": info.actor_id,
            "node_id": info.node_id,
            "node_ip": info.node_ip,
            "pid": info.pid,
            "gpu_ids": list(info.gpu_ids),
            "gpus": [_gpu(one) for one in info.gpu_ids],
            "status": self.status,
            "resources": {"resources": dict(self.resources)},
            "log_file_path": info.log_file_path or None,
        }


@dataclass
class AttemptRecord:
    """One group of workers. status: PENDING, RUNNING, FINISHED, ERRORED or ABORTED."""

    run_id: str
    number: int
    resources: list[dict[str, float]]
    status: str = "PENDING"
    detail: str | None = None
    start_time_ns: int = 0
    end_time_ns: int | None = None
    workers: list[WorkerRecord] = field(default_factory=list)
    # Set when ranks have waited for others as long as for a warning; not in Ray. It is
    # {"since_time_ns", "missing_ranks": [rank], "calls": {rank that waits: name of the function}}
    # with the first ranks.
    waiting: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "run_id": self.run_id,
            "attempt_id": f"{self.run_id}_{self.number}",
            "status": self.status,
            "status_detail": self.detail,
            "start_time_ns": self.start_time_ns,
            "end_time_ns": self.end_time_ns,
            "resources": [{"resources": dict(bundle)} for bundle in self.resources],
            "workers": [worker.to_dict() for worker in self.workers],
            "waiting": self.waiting,
        }


class RunRecord:
    """A run. The controller writes it; `version` grows with each change.

    status: INITIALIZING, SCHEDULING, RUNNING, RESTARTING, RESIZING, FINISHED, ERRORED or ABORTED.
    """

    def __init__(self, run_id: str, name: str, job_id: str, actor_id: str, settings: dict):
        self.version = 0
        self._fields: dict[str, Any] = {
            "id": run_id,
            "name": name,
            "job_id": job_id,
            "controller_actor_id": actor_id,
            "status": "INITIALIZING",
            "status_detail": None,
            "start_time_ns": time.time_ns(),
            "end_time_ns": None,
            # The node that has the log file; not in Ray.
            "controller_node_id": settings.pop("controller_node_id", None),
            "controller_log_file_path": settings.pop("controller_log_file_path", None),
            "framework_versions": settings.pop("framework_versions", {}),
            "run_settings": settings,
        }
        self._attempts: list[AttemptRecord] = []

    def show(self, status: str, detail: str = "") -> None:
        """Sets the status of the run; "" keeps the old one."""
        self.version += 1
        if status == "ERRORED" and not detail and self._attempts:
            detail = self._attempts[-1].detail or ""
        if status:
            self._fields.update(status=status, status_detail=detail or None)
        if status in RUN_ENDED:
            self._fields["end_time_ns"] = time.time_ns()

    def begin_attempt(self, number: int, resources: list[dict[str, float]]) -> None:
        """Adds an attempt whose group of workers is being started. resources: of each worker."""
        self.version += 1
        self._attempts.append(
            AttemptRecord(self._fields["id"], number, resources, start_time_ns=time.time_ns())
        )
        del self._attempts[:-_MOST_ATTEMPTS]

    def set_workers(self, workers: list[WorkerInfo], resources: dict[str, float]) -> None:
        """Notes that the workers of the newest attempt are there."""
        self.version += 1
        self._attempts[-1].workers = [WorkerRecord(info, resources) for info in workers]

    def show_attempt(self, number: int, status: str, detail: str = "") -> None:
        """Sets the status of the attempt; does nothing when the attempt is unknown."""
        attempt = self._attempt(number)
        if attempt is None:
            return
        self.version += 1
        attempt.status, attempt.detail = status, detail or None

    def end_attempt(self, number: int) -> None:
        """Notes that nothing of the attempt is left."""
        attempt = self._attempt(number)
        if attempt is None:
            return
        self.version += 1
        attempt.end_time_ns = time.time_ns()
        attempt.waiting = None
        for worker in attempt.workers:
            worker.status = "DEAD"

    def set_waiting(self, number: int, waiting: dict[str, Any] | None) -> None:
        """Notes that ranks of the attempt wait for others (see AttemptRecord), or no longer do."""
        attempt = self._attempt(number)
        if attempt is not None and attempt.end_time_ns is None:
            self.version += 1
            attempt.waiting = waiting

    def worker_died(self, number: int, rank: int) -> None:
        """Notes that the process of this rank is dead."""
        attempt = self._attempt(number)
        for worker in attempt.workers if attempt else ():
            if worker.info.rank == rank:
                self.version += 1
                worker.status = "DEAD"

    def _attempt(self, number: int) -> AttemptRecord | None:
        return next((one for one in reversed(self._attempts) if one.number == number), None)

    def to_dict(self) -> dict[str, Any]:
        """Returns the record as plain values, its attempts from the first to the last."""
        return {**self._fields, "attempts": [one.to_dict() for one in self._attempts]}
