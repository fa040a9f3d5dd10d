"""The run as it is known to the worker that executes its function: one object in each process."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from typing import Any

import ray
from ray import cloudpickle
from ray.train.profiles.steps import REPORT, Steps
from ray.train.ranks import WorkerInfo
from ray.train.reporter import Reporter
from ray.train.times import Times

logger = logging.getLogger("ray.train")

# The first words of an answer of the synchronisation actor.
DONE, FAILED, LATE, MISSED = 0, 1, 2, 3
# A broadcast of a pickled value of more bytes than this is worth a warning.
_SMALL_BYTES = 1000


@dataclass
class WorkerSetup:
    """The facts that the controller tells a worker before the function starts."""

    run_id: str
    experiment_name: str
    attempt: int
    info: WorkerInfo
    world_size: int
    storage: Any
    # The latest registered checkpoint, or None.
    checkpoint: Any
    # How many reports the run had before this attempt.
    reports_before: int
    controller: Any
    synchronization: Any
    shards: dict[str, Any] | None = None
    environment: dict[str, str] = field(default_factory=dict)
    # Relative to the session directory of the worker's node.
    working_directory: str | None = None
    log_level: int = logging.INFO
    patch_print: bool = True
    upload_warn_interval_s: float = 60.0
    exports_metrics: bool = True
    # The Order of a profile that begins with the function, or None.
    profile: Any = None


class Session:
    """The run as one rank sees it; thread-safe as far as the user's own calls are."""

    is_local = False

    def __init__(self, setup: WorkerSetup):
        info = setup.info
        self.setup = setup
        self.world_rank, self.local_rank = info.rank, info.local_rank
        self.node_rank, self.local_world_size = info.node_rank, info.local_world_size
        self.world_size = setup.world_size
        self.node_ip, self.node_id = info.node_ip, info.node_id
        self.gpu_ids = list(info.gpu_ids)
        self.experiment_name = setup.experiment_name
        self.storage = setup.storage
        self.checkpoint = setup.checkpoint
        self.shards = setup.shards
        self.times = Times(
            {
                "ray_train_run_name": setup.experiment_name,
                "ray_train_run_id": setup.run_id,
                "ray_train_worker_world_rank": str(info.rank),
                "ray_train_worker_actor_id": info.actor_id,
            }
            if setup.exports_metrics
            else None
        )
        self.steps = Steps()
        self.steps.times = self.times.steps
        # Ends the worker with an exception although its function goes on. The worker sets this.
        self.fail = None
        self._lock = threading.Lock()
        self._reporter = None
        self._recorder = None
        self._has_ended = False

    def meet(self, call: str, value: Any = None) -> Any:
        """Waits for all ranks in the call of that name; returns what rank 0 brought.

        Raises RuntimeError when ranks make different calls, TimeoutError when some do not come.
        """
        return self._meet(call, value, False)[0]

    def agree(self, name: str | None, uploads: bool) -> tuple[str, bool]:
        """Meets all ranks in report(); returns rank 0's name of the checkpoint's directory.

        The second value is whether the others have not waited for this rank. Raises as meet() does.
        """
        return self._meet("report", name, uploads)

    def _meet(self, call: str, value: Any, uploads: bool) -> tuple[Any, bool]:
        word, answer = ray.get(
            self.setup.synchronization.meet.remote(self.world_rank, call, value, uploads)
        )
        if word in (DONE, MISSED):
            return answer, word == MISSED
        raise (TimeoutError if word == LATE else RuntimeError)(answer)

    def returned(self) -> None:
        """Tells ranks that wait for this one that it will not come."""
        # Nobody waits for the answer, because the meeting place may have ended.
        self.setup.synchronization.returned.remote(self.world_rank)

    def driver_sees_storage(self) -> bool:
        """Returns whether the marker in the folder of the run is there on the driver's node."""
        return ray.get(self.setup.controller.sees_storage.remote())

    def broadcast(self, data: Any) -> Any:
        """See collective.broadcast_from_rank_zero()."""
        blob = None
        if self.world_rank == 0:
            # The value is pickled here, so that the synchronisation actor needs none of the user's
            # modules.
            blob = cloudpickle.dumps(data)
            if len(blob) > _SMALL_BYTES:
                logger.warning(
                    "broadcast_from_rank_zero() sends %d bytes; it is meant for less than %d. "
                    "Share large values through storage or the object store.",
                    len(blob),
                    _SMALL_BYTES,
                )
        blob = self.meet("broadcast_from_rank_zero", blob)
        return data if self.world_rank == 0 else cloudpickle.loads(blob)

    @property
    def reporter(self):
        """Carries this rank's reports to the controller (reporter.py)."""
        with self._lock:
            if self._reporter is None:
                self._reporter = Reporter(self)
            return self._reporter

    def report(self, report: Any) -> None:
        """See context.report(), whose arguments a reporter.Report holds."""
        self.reporter.report(report)
        self.steps.made(REPORT)

    @property
    def recorder(self):
        """Records profiles of this rank (profiles/recorder.py)."""
        # Imported here, since most runs have no profile.
        from ray.train.profiles.recorder import Recorder

        with self._lock:
            if self._recorder is None:
                self._recorder = Recorder(self, self._has_ended)
            return self._recorder

    def begin(self) -> None:
        """Notes that the function begins in the calling thread."""
        self.steps.begin()

    def end(self, is_success: bool) -> None:
        """Notes that the function has ended in the calling thread. If it has returned, waits for a
        profile."""
        with self._lock:
            self._has_ended, recorder = True, self._recorder
        if recorder is not None:
            recorder.close(is_success)

    def settle(self) -> None:
        """Waits until the controller has all reports. Raises what an upload raised."""
        if self._reporter is not None:
            self._reporter.settle()

    def settle_after_failure(self) -> None:
        """Waits, within limits, until the controller has the reports before a failure."""
        if self._reporter is not None:
            self._reporter.settle_after_failure()

    def reported_checkpoints(self, mode: Any, timeout_s: float | None) -> list:
        """See context.get_all_reported_checkpoints()."""
        made = self._reporter.made if self._reporter is not None else 0
        return ray.get(
            self.setup.controller.reported_checkpoints.remote(
                self.setup.attempt, made, mode.value, timeout_s
            )
        )

    def preemption(self) -> tuple | None:
        """Meets all ranks; returns (deadline in ms or None, node -> ranks) of the nodes that are
        being drained, or None."""
        return self.meet("get_preemption_info")


_session: Any = None


def set_session(session: Any) -> None:
    """Makes `session` the session of this process; None ends that."""
    global _session
    _session = session


def get_session(caller: str = "ray.train") -> Any:
    """The session of this process. Raises RuntimeError outside of a training function."""
    if _session is None:
        raise RuntimeError(
            f"{caller} was called outside of a training function. It works in the function that "
            "is given to a trainer (train_loop_per_worker), while fit() runs it."
        )
    return _session
