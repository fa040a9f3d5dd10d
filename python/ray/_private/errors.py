"""From the data of errors (proto ErrorValue, Result codes) to exceptions.

The binding calls this module only when something has failed.
"""

from __future__ import annotations

import ray.exceptions as ex
from ray import _raylet
from ray._private.error_codes import (
    ACTOR_DIED,
    ACTOR_UNAVAILABLE,
    ALREADY_EXISTS,
    CANCELLED,
    GROUP_REMOVED_EXIT,
    INVALID,
    LOCAL_NODE_DIED,
    NODE_DIED,
    NOT_FOUND,
    OBJECT_LOST,
    OBJECT_STORE_FULL,
    OUT_OF_DISK,
    OUT_OF_MEMORY,
    OWNER_DIED,
    RESOURCE_EXHAUSTED,
    RUNTIME_ENV_SETUP,
    TIMEOUT,
    UNAUTHENTICATED,
    UNSCHEDULABLE,
    UNSCHEDULABLE_EXIT,
    UNSUPPORTED,
    WORKER_CRASHED,
)


def _with_detail(error, detail):
    error.detail = detail
    return error


def system_exception(code: int, message: str) -> Exception:
    """The exception for a failed call of the worker library; it has the attribute `code`."""
    makers = {
        INVALID: ValueError,
        NOT_FOUND: ValueError,
        ALREADY_EXISTS: ex.ActorAlreadyExistsError,
        TIMEOUT: ex.GetTimeoutError,
        UNAUTHENTICATED: ex.AuthenticationError,
        OBJECT_STORE_FULL: ex.ObjectStoreFullError,
        OUT_OF_DISK: ex.OutOfDiskError,
        WORKER_CRASHED: ex.WorkerCrashedError,
        NODE_DIED: ex.NodeDiedError,
        CANCELLED: lambda text: ex.TaskCancelledError(None, text),
        UNSUPPORTED: NotImplementedError,
        RESOURCE_EXHAUSTED: ex.PendingCallsLimitExceeded,
        OUT_OF_MEMORY: ex.OutOfMemoryError,
        UNSCHEDULABLE: ex.TaskUnschedulableError,
        LOCAL_NODE_DIED: ex.LocalRayletDiedError,
        ACTOR_DIED: ex.ActorDiedError,
        RUNTIME_ENV_SETUP: ex.RuntimeEnvSetupError,
        ACTOR_UNAVAILABLE: lambda text: _actor_unavailable(text, None),
        OBJECT_LOST: lambda text: _with_detail(ex.ObjectLostError("", None, ""), text),
        OWNER_DIED: lambda text: _with_detail(ex.OwnerDiedError("", None, ""), text),
    }
    error = makers.get(code, ex.RaySystemError)(message)
    error.code = code
    return error


def _task_error(fields: dict) -> Exception:
    where = f"pid={fields['pid']}, ip={fields['ip']}"
    if fields["actor_id"]:
        where += f", actor_id={fields['actor_id']}"
        if fields["actor_repr"]:
            where += f", repr={fields['actor_repr']}"
    title = fields["proctitle"] or "ray::" + fields["function_name"]
    text = f"\x1b[36m{title}()\x1b[39m ({where})\n{fields['traceback']}".rstrip("\n")
    cause = None
    # Without the mark of a pickle it is an encoded ErrorValue: an argument of the task was an
    # error.
    if fields["cause"] and fields["cause"][:1] != b"\x80":
        cause = _raylet_error(fields["cause"])
        if isinstance(cause, ex.TaskCancelledError):
            cause = ex.TaskCancelledError()
    elif fields["cause"]:
        import pickle

        try:
            cause = pickle.loads(fields["cause"])
        except Exception:
            return ex.UnserializableException(text)
    elif fields["language"] != 0:
        cause = ex.CrossLanguageError(fields["message"])
    if cause is None:
        cause = ex.RayError(fields["message"])
    error = ex.RayTaskError(
        function_name=fields["function_name"],
        traceback_str=text,
        cause=cause,
        proctitle=title,
        pid=fields["pid"],
        ip=fields["ip"],
        actor_repr=fields["actor_repr"] or None,
        actor_id=fields["actor_id"] or None,
    )
    return error.as_instanceof_cause()


def _raylet_error(encoded: bytes):
    return _raylet.encoded_error(encoded)


def load_failure(error: Exception) -> Exception:
    """The exception to raise in place of `error`, which loading a value raised."""
    if isinstance(error, ex.RayError):
        return error
    import traceback

    return ex.RaySystemError(
        error, "".join(traceback.format_exception(type(error), error, error.__traceback__))
    )


def _actor_unavailable(message: str, actor_id: str | None) -> Exception:
    error = ex.ActorUnavailableError(message, actor_id)
    # The message is complete: the class would add to it.
    error.error_msg = message
    return error


def _actor_died(fields: dict) -> Exception:
    if fields.get("creation_error"):
        cause = _raylet_error(fields["creation_error"])
        if isinstance(cause, ex.RayTaskError):
            return ex.ActorDiedError(cause, fields["actor_id"] or None)
    # An actor that had a process has died, whatever the reason.
    never_started = fields.get("exit_kind") == GROUP_REMOVED_EXIT and not fields.get("exit_pid")
    if fields.get("exit_kind") == UNSCHEDULABLE_EXIT or never_started:
        return ex.ActorUnschedulableError(fields["message"])
    return ex.ActorDiedError(fields["message"], fields["actor_id"] or None)


def from_error_value(fields: dict) -> Exception:
    """The exception that `get` raises for an object that holds an error."""
    code, message = fields["code"], fields["message"]
    if code == _raylet.TASK_RAISED:
        return _task_error(fields)
    if code == ACTOR_DIED:
        return _actor_died(fields)
    if code == UNSCHEDULABLE and fields.get("exit_kind") == GROUP_REMOVED_EXIT:
        return ex.TaskPlacementGroupRemoved()
    if code == ACTOR_UNAVAILABLE:
        return _actor_unavailable(message, fields["actor_id"] or None)
    if code == CANCELLED:
        from ray._private.ids import TaskID

        return (
            ex.TaskCancelledError(TaskID.from_hex(fields["task_id"]), None)
            if fields["task_id"]
            else ex.TaskCancelledError(None, message or None)
        )
    if code in (OBJECT_LOST, OWNER_DIED):
        kind = ex.ObjectLostError if code == OBJECT_LOST else ex.OwnerDiedError
        return _with_detail(kind(fields["object_id"], None, ""), message)
    return system_exception(code, message)
