"""report() on the worker's side: agreeing on a directory, uploading, and telling the controller."""

from __future__ import annotations

import datetime
import logging
import queue
import sys
import threading
import time
from typing import Any, Callable, NamedTuple

import ray
from ray.train.errors import WorkerHealthCheckFailedError
from ray.train.filesystem import operations
from ray.train.reported import CheckpointUploadMode, TrainingReport
from ray.train.storage import UnseenStorageError
from ray.train.times import REPORT, SYNC, TRANSFER

logger = logging.getLogger("ray.train")

# A rank that failed waits at most so many seconds for a controller that does not take its last
# report.
_LONGEST_WAIT_OF_A_FAILURE_S = 10.0

_SYNC, _ASYNC = CheckpointUploadMode.SYNC, CheckpointUploadMode.ASYNC


def holds_tensors(value: Any) -> bool:
    """Whether a tensor or module of torch is somewhere in dicts, lists and tuples.

    Without torch in the process there can be none, and torch is not imported to find out.
    """
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "Tensor"):
        return False
    kinds = (torch.Tensor, torch.nn.Module)
    waiting, seen = [value], set()
    while waiting:
        value = waiting.pop()
        if isinstance(value, kinds):
            return True
        if isinstance(value, (dict, list, tuple)) and id(value) not in seen:
            seen.add(id(value))
            waiting.extend(value.values() if isinstance(value, dict) else value)
    return False


def check_metrics(metrics: Any) -> None:
    """Raises ValueError for metrics with tensors in them."""
    if holds_tensors(metrics):
        raise ValueError(
            "report(): the metrics hold a torch.Tensor or torch.nn.Module. Pass Python numbers "
            "(tensor.item()) or NumPy arrays, and save models in the checkpoint."
        )


def default_directory(now: datetime.datetime) -> str:
    """Returns the name of a checkpoint's directory for a user who gives none."""
    return f"checkpoint_{now:%Y-%m-%d_%H-%M-%S.%f}"


class Report(NamedTuple):
    """The arguments of one report(), already checked."""

    metrics: dict[str, Any]
    checkpoint: Any = None
    # The name on which all ranks have agreed in their meeting.
    name: str | None = None
    mode: CheckpointUploadMode = _SYNC
    delete: bool | None = None
    upload_fn: Callable[[Any, str], Any] | None = None
    validation: Any = False
    # The report is complete without this rank, whose node is being drained.
    is_late: bool = False


class Reporter:
    """Carries one rank's reports to the controller, in order.

    Reports whose upload goes on in the background, and those made after them, are handed to one
    thread; others go from the calling thread. Each is sent when the controller has taken the one
    before.
    """

    def __init__(self, session: Any):
        # How many reports this rank has made in this attempt.
        self.made = 0
        self._session = session
        self._times = session.times
        # The reference of the answer to the last report that was sent.
        self._taken = None
        self._waiting: queue.SimpleQueue | None = None
        self._unsent = 0
        self._has_uploaded = False
        self._idle = threading.Condition()
        self._error: BaseException | None = None

    def report(self, report: Report) -> None:
        """See context.report()."""
        if self._error is not None:
            raise self._error
        begin = time.perf_counter()
        try:
            self._report(report)
        finally:
            self._times.add(REPORT, time.perf_counter() - begin)

    def _report(self, report: Report) -> None:
        session, name = self._session, report.name
        if self._is_idle():
            # When the ranks have met, the controller has everything that all of them reported
            # before, whichever of them dies later.
            self._wait_until_taken()
        begin = time.perf_counter()
        if session.world_rank == 0 and not name:
            name = default_directory(datetime.datetime.now())
        has_checkpoint = report.checkpoint is not None
        in_background = has_checkpoint and report.mode is _ASYNC
        uploads = has_checkpoint and report.upload_fn is None and report.mode in (_SYNC, _ASYNC)
        name, is_late = session.agree(name, uploads)
        report = report._replace(name=name, is_late=is_late)
        self._times.add(SYNC, time.perf_counter() - begin)
        self.made += 1
        if not in_background and self._is_idle():
            self._do(report)
            return
        self._enqueue(report)
        if has_checkpoint and not in_background:
            # This upload belongs to the call, but the uploads in the background come first.
            self._wait_until_idle()

    def settle(self) -> None:
        """Waits until everything is uploaded and taken. Raises what failed."""
        self._wait_until_idle()
        self._wait_until_taken()

    def settle_after_failure(self) -> None:
        """Waits, within limits, until the controller has what was sent before the function failed.

        The failure takes another way to the controller and could come there first, so that the
        last report would be lost. Uploads in the background are not waited for.
        """
        if self._taken is not None and self._is_idle():
            ray.wait([self._taken], timeout=_LONGEST_WAIT_OF_A_FAILURE_S)

    # ---- in the background

    def _is_idle(self) -> bool:
        with self._idle:
            return self._unsent == 0

    def _wait_until_idle(self) -> None:
        with self._idle:
            self._idle.wait_for(lambda: self._unsent == 0 or self._error is not None)
        if self._error is not None:
            raise self._error

    def _enqueue(self, report: Report) -> None:
        with self._idle:
            self._unsent += 1
        if self._waiting is None:
            self._waiting = queue.SimpleQueue()
            threading.Thread(target=self._run, name="ray-train-upload", daemon=True).start()
        self._waiting.put(report)

    def _run(self) -> None:
        while True:
            report = self._waiting.get()
            try:
                self._do(report)
            except BaseException as error:
                with self._idle:
                    self._error = error
                    self._idle.notify_all()
                self._session.fail(error)
                return
            with self._idle:
                self._unsent -= 1
                self._idle.notify_all()

    # ---- one report

    def _do(self, report: Report) -> None:
        directory = None
        if report.checkpoint is not None:
            begin = time.perf_counter()
            try:
                placed, directory = self._place(report)
            except OSError as error:
                if not report.is_late:
                    raise
                # The report was completed without this rank: the checkpoint is registered without
                # its files, and perhaps deleted since.
                placed = report.checkpoint
                logger.warning(
                    "Rank %d came too late for the checkpoint %s, which lacks its files: %s",
                    self._session.world_rank,
                    report.name,
                    error,
                )
            else:
                self._session.checkpoint = placed
            self._times.add(TRANSFER, time.perf_counter() - begin)
            delete = report.mode is _ASYNC if report.delete is None else report.delete
            if delete and placed.path != report.checkpoint.path:
                operations(report.checkpoint.filesystem).delete_directory(report.checkpoint.path)
        times = self._times.to_dict()
        self._send(TrainingReport(report.metrics, directory, report.validation, times))

    def _place(self, report: Report) -> tuple[Any, str]:
        """Brings the checkpoint into the run's folder; returns the checkpoint there and its
        directory's name."""
        storage, checkpoint = self._session.storage, report.checkpoint
        if report.upload_fn is not None:
            placed = report.upload_fn(checkpoint, report.name)
            if not isinstance(placed, type(checkpoint)) or not storage.is_inside(placed):
                raise ValueError(
                    f"checkpoint_upload_fn returned {placed!r}; it must return a Checkpoint inside "
                    f"the run's folder {storage.experiment_fs_path}."
                )
            return placed, storage.relative(placed)
        if report.mode is CheckpointUploadMode.NO_UPLOAD:
            if not storage.is_inside(checkpoint):
                raise ValueError(
                    f"report(): with CheckpointUploadMode.NO_UPLOAD the checkpoint must lie inside "
                    f"the run's folder {storage.experiment_fs_path} and on its filesystem, but it "
                    f"is {checkpoint!r}. Write it there, or let report() upload it."
                )
            return checkpoint, storage.relative(checkpoint)
        warning = threading.Timer(self._session.setup.upload_warn_interval_s, self._warn, (report,))
        warning.daemon = True
        warning.start()
        try:
            placed = storage.persist(checkpoint, report.name)
        except UnseenStorageError:
            raise RuntimeError(
                storage.why_unseen(self._session.driver_sees_storage(), self._has_uploaded)
            ) from None
        finally:
            warning.cancel()
        self._has_uploaded = True
        return placed, report.name

    def _warn(self, report: Report) -> None:
        logger.warning(
            "Rank %d has been uploading %r to %s for %.0f s.",
            self._session.world_rank,
            report.checkpoint,
            report.name,
            self._session.setup.upload_warn_interval_s,
        )

    def _send(self, report: TrainingReport) -> None:
        self._wait_until_taken()
        setup = self._session.setup
        try:
            self._taken = setup.controller.take_report.remote(
                setup.attempt, self._session.world_rank, report
            )
        except Exception as error:
            self._give_up(error)

    def _wait_until_taken(self) -> None:
        if self._taken is None:
            return
        taken, self._taken = self._taken, None
        try:
            ray.get(taken)
        except ray.exceptions.RayTaskError as error:
            self._give_up(error)

    def _give_up(self, error: BaseException) -> None:
        """Fails the worker because its metrics cannot be sent, whatever the function does about the
        error."""
        failure = WorkerHealthCheckFailedError(
            "The metrics of a report could not be sent to the controller. Metrics must pickle, and "
            "their classes must be importable there: report Python numbers and strings.",
            error,
        )
        self._session.fail(failure)
        raise failure from error
