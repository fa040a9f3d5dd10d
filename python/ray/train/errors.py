"""Errors of training runs. All of them pickle, the exceptions inside them one by one."""

from __future__ import annotations

import os
import re
import traceback

import ray
from ray import cloudpickle
from ray.train.preemption import PreemptionInfo
from ray.train.public import public

# A long text of a worker's error is shown with so many characters of its beginning and of its end.
_SNIPPET_CHARACTERS = 500
_LIBRARY = os.path.dirname(os.path.abspath(ray.__file__)) + os.sep


class RayTrainError(Exception):
    """Root of the errors of ray.train."""


@public
class TrainingFailedError(RayTrainError):
    """Root of the errors with which fit() ends."""


@public
class WorkerGroupError(TrainingFailedError):
    """Workers failed, and no retry was left.

    worker_failures: rank -> the exception that ended it, as its function raised it; for a process
    that died a WorkerHealthCheckFailedError.
    """

    def __init__(self, error_message: str, worker_failures: dict[int, BaseException]):
        super().__init__(f"Training failed because of errors in its workers:\n{error_message}")
        self.error_message = error_message
        self.worker_failures = worker_failures

    def __reduce__(self):
        packed = {rank: pack(failure) for rank, failure in self.worker_failures.items()}
        return _restore_worker_group_error, (type(self), self.error_message, packed)


def _restore_worker_group_error(cls, message, packed):
    return cls(message, {rank: unpack(failure) for rank, failure in packed.items()})


@public
class NCCLHangError(WorkerGroupError):
    """A collective operation of NCCL did not end in its time."""


@public
class ControllerError(TrainingFailedError):
    """The process that steers the run failed, or could not start its workers.

    controller_failure: the exception behind it.
    """

    def __init__(self, controller_failure: BaseException):
        super().__init__(
            "Training failed because of an error in its controller:\n"
            f"{described(controller_failure)}"
        )
        self.controller_failure = controller_failure

    def __reduce__(self):
        return _restore_controller_error, (type(self), pack(self.controller_failure))


def _restore_controller_error(cls, packed):
    return cls(unpack(packed))


@public
class PreemptionError(TrainingFailedError):
    """Nodes of the run were drained, and no retry was left for that.

    drain_timed_out: whether the deadline passed before the workers had ended.
    """

    def __init__(self, preemption_info: PreemptionInfo, drain_timed_out: bool = False):
        super().__init__(
            "Training was interrupted because nodes were drained (preempted_ranks="
            f"{preemption_info.preempted_ranks}, drain_timed_out={drain_timed_out})."
        )
        self.preemption_info = preemption_info
        self.drain_timed_out = drain_timed_out

    def __reduce__(self):
        return type(self), (self.preemption_info, self.drain_timed_out)


class WorkerHealthCheckFailedError(RayTrainError):
    """A worker's process died or does not answer, or what it sent cannot be read.

    health_check_failure: the exception that showed it, an ActorDiedError for a dead process.
    """

    def __init__(self, message: str, failure: BaseException | None = None):
        super().__init__(message if failure is None else f"{message}\n{described(failure)}")
        self._message = message
        self.health_check_failure = failure

    def __reduce__(self):
        packed = None if self.health_check_failure is None else pack(self.health_check_failure)
        return _restore_health_check_error, (type(self), self._message, packed)


def _restore_health_check_error(cls, message, packed):
    return cls(message, None if packed is None else unpack(packed))


class WorkerGroupStartupError(RayTrainError):
    """The workers of a run could not be started; this is retried (controller_failure_limit)."""


class WorkerGroupStartupTimeoutError(WorkerGroupStartupError):
    """The cluster had no room for the workers in time."""

    def __init__(self, num_workers: int, timeout_s: float | None = None):
        within = "in time" if timeout_s is None else f"within {timeout_s:g} s"
        super().__init__(
            f"The cluster had no room for {num_workers} workers {within}. Compare what the "
            "ScalingConfig asks for with `rayctl status`."
        )
        self.num_workers = num_workers
        self.timeout_s = timeout_s

    def __reduce__(self):
        return type(self), (self.num_workers, self.timeout_s)


class WorkerGroupStartupFailedError(WorkerGroupStartupError):
    """A worker ended, or its node went away, while the group was being started."""


class CheckpointManagerInitializationError(RayTrainError):
    """The record of a run's earlier checkpoints cannot be used."""


def described(error: BaseException) -> str:
    """Returns class and text of an exception. Its class may be a user's whose __str__() fails."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception as why:
        return f"{type(error).__name__} (its text cannot be had: {type(why).__name__} in __str__)"


def pack(error: BaseException) -> tuple[bytes | None, str]:
    """Returns an exception as bytes and as text; the bytes are None if it does not pickle."""
    text = described(error)
    try:
        return cloudpickle.dumps(error), text
    except Exception as why:
        return None, f"{text}\n(The exception itself could not be sent: {described(why)})"


def unpack(packed: tuple[bytes | None, str]) -> BaseException:
    """Returns the exception that pack() took, or a RuntimeError with its text if it cannot be
    restored."""
    data, text = packed
    if data is None:
        return RuntimeError(text)
    try:
        restored = cloudpickle.loads(data)
    except Exception as why:
        return RuntimeError(
            f"{text}\n(The exception itself cannot be restored in this process: {described(why)})"
        )
    return restored if isinstance(restored, BaseException) else RuntimeError(text)


def user_traceback(error: BaseException) -> str:
    """The traceback as Python prints it, without frames of this library.

    Causes and contexts are included.
    """
    summary = traceback.TracebackException.from_exception(error)
    seen: set[int] = set()
    waiting = [summary]
    while waiting:
        part = waiting.pop()
        if part is None or id(part) in seen:
            continue
        seen.add(id(part))
        frames = [frame for frame in part.stack if not frame.filename.startswith(_LIBRARY)]
        part.stack = traceback.StackSummary.from_list(frames)
        waiting += [part.__cause__, part.__context__, *(getattr(part, "exceptions", None) or ())]
    return "".join(summary.format()).rstrip("\n")


def worker_group_error(
    worker_failures: dict[int, BaseException], tracebacks: dict[int, str]
) -> WorkerGroupError:
    """The error of a group in which these ranks failed.

    tracebacks: rank -> user_traceback() of it, where the worker sent one. Equal errors are shown
    once: numbers in their texts (ranks, addresses, pids) make no difference. Long texts are cut,
    except where the process itself died: its text says how.
    """
    ranks_of: dict[str, list[int]] = {}
    text_of: dict[str, str] = {}
    for rank in sorted(worker_failures):
        text = tracebacks.get(rank) or described(worker_failures[rank])
        key = re.sub(r"\d+", "#", text)
        ranks_of.setdefault(key, []).append(rank)
        text_of.setdefault(key, text)
    parts = []
    for key, ranks in ranks_of.items():
        died = any(
            isinstance(worker_failures[rank], WorkerHealthCheckFailedError) for rank in ranks
        )
        text = text_of[key] if died else _snippet(text_of[key])
        parts.append(f"[Rank {','.join(map(str, ranks))} Error Snippet]:\n{text}")
    return WorkerGroupError("\n".join(parts), worker_failures)


def _snippet(text: str) -> str:
    if len(text) <= 2 * _SNIPPET_CHARACTERS:
        return text
    left_out = len(text) - 2 * _SNIPPET_CHARACTERS
    return (
        f"{text[:_SNIPPET_CHARACTERS]}\n... ({left_out} characters left out) ...\n"
        f"{text[-_SNIPPET_CHARACTERS:]}"
    )
