"""The Python half of executing tasks: functions in, failures out. Called by binding/executor.cc with no task's exception pending."""

from __future__ import annotations

import os
import sys

from ray import _raylet
from ray._private import (
    accelerators as _accelerators,
)  # it remembers the environment before the first task

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_functions: dict[bytes, object] = {}
node_manager_pid = int(
    os.environ.get("RAY_RAYLET_PID") or os.getppid()
)  # given by the node-manager, for whom the fork server imports this


def _omp_set_by_user() -> bool:
    """The node-manager gives workers a default: what counts is its own environment."""
    try:
        with open(f"/proc/{node_manager_pid}/environ", "rb") as environ:
            return any(
                entry.startswith(b"OMP_NUM_THREADS=") for entry in environ.read().split(b"\0")
            )
    except OSError:
        return "OMP_NUM_THREADS" in os.environ


_user_omp = _omp_set_by_user()
_applied_path: list[str] = []
environment_path: list[str] = []  # of the runtime environment: comes first
current_job = ""  # hex id, for the log markers


class ActorExit(BaseException):
    """Raised by ray.actor.exit_actor(): no `except Exception` of a method may stop it."""


# ---- what to run


def load_function(key: bytes, blob: bytes):
    """The function or class of a descriptor: unpickled once per process."""
    function = _functions.get(key)
    if function is None:
        import pickle
        import time

        start_us = time.time_ns() // 1000
        if not blob:
            blob = _raylet.kv_get("fun", key.hex())
            if blob is None:
                raise RuntimeError(
                    f"the definition {key.hex()} is not in the cluster's key-value store: was its job ended?"
                )
        function = _functions[key] = pickle.loads(blob)
        if _raylet.is_profiling() and not isinstance(function, type):
            _raylet.record_span("wait_for_function", start_us, "")
    return function


def load_constructor(key: bytes, blob: bytes):
    """What makes an actor: its class, or for one whose __init__ is a coroutine function another, whose result is the instance."""
    from ray._private.signature import is_coroutine

    cls = load_function(key, blob)
    if not is_coroutine(cls.__init__):
        return cls

    async def construct(*args, **kwargs):
        instance = cls.__new__(cls, *args, **kwargs)
        await instance.__init__(*args, **kwargs)
        return instance

    return construct


def load_retry_types(blob: bytes) -> tuple:
    import pickle

    return tuple(pickle.loads(blob))


def actor_method(instance, name: str):
    if name == "__ray_ready__":
        return lambda: True
    if name == "__ray_call__":
        return lambda function, *args, **kwargs: function(instance, *args, **kwargs)
    if name == "__ray_terminate__":
        return _terminate
    return getattr(instance, name)


def _terminate():
    raise ActorExit("__ray_terminate__() was called")


def check_runtime(drivers: str):
    """RuntimeError for a driver ("Python 3.12.1") of another minor version: what one of them pickles breaks the other."""
    from ray._private.worker import RUNTIME

    if drivers and drivers.rpartition(".")[0] != RUNTIME.rpartition(".")[0]:
        raise RuntimeError(
            f"Version mismatch: the driver runs {drivers}, the workers of the node {_raylet.context()['node_ip']} run {RUNTIME} ({sys.executable}). "
            "Use the same minor version of Python on every machine."
        )


def apply_job_config(
    job_id: str, sys_path: list, code_search_path: list, logging_config: str, runtime: str
):
    """Makes the driver's modules importable, in place of the previous job's."""
    from ray._private.worker import global_worker

    check_runtime(runtime)
    global_worker.code_search_path = code_search_path
    # Python modules beside the libraries: what a C++ program calls by name.
    sys_path = [
        *sys_path,
        *(entry if os.path.isdir(entry) else os.path.dirname(entry) for entry in code_search_path),
    ]
    global current_job, _applied_path
    current_job = job_id
    for entry in _applied_path:
        if entry in sys.path:
            sys.path.remove(entry)
    _applied_path = [entry for entry in sys_path if entry not in sys.path]
    first = len(environment_path)
    sys.path[first:first] = _applied_path
    os.environ["RAY_JOB_ID"] = job_id
    if logging_config:
        from ray._private.logging_config import apply_text

        apply_text(logging_config)


def set_omp_threads(threads: int):
    """Math libraries use the CPUs the task asked for, unless the user said otherwise."""
    if not _user_omp:
        os.environ["OMP_NUM_THREADS"] = str(threads)


def keep_omp_threads():
    """The runtime environment says how many."""
    global _user_omp
    _user_omp = True


def start_pool_thread():
    import threading

    threading.Thread(target=_raylet.run_pool_thread, name="ray_actor_pool", daemon=True).start()


# ---- results


def split_returns(result, count: int) -> tuple:
    """(values, failure) of a task with num_returns=count. What a generator yields before it fails or ends early are results all the same."""
    if hasattr(result, "__next__"):
        values = []
        try:
            while len(values) < count:
                values.append(next(result))
        except StopIteration:
            return values, ValueError(
                f"Task returned {len(values)} objects, but num_returns={count}."
            )
        except BaseException as error:
            return values, error
        return values, None
    length = len(result)
    if length != count:
        raise ValueError(f"Task returned {length} objects, but num_returns={count}.")
    return list(result), None


# ---- failures


def exit_reason(error: BaseException, is_actor: bool):
    """The message for callers when the exception means that this process is to end by its own wish, else None."""
    if isinstance(error, ActorExit):
        reason = str(error) or "exit_actor() was called"
    elif isinstance(error, SystemExit):
        code = error.code
        if not is_actor or code not in (None, 0):
            # As the interpreter does: the owner sees a worker that died.
            if code is not None and not isinstance(code, int):
                print(code, file=sys.stderr)
                code = 1
            from ray._private.ending import end_process

            end_process(error, code or 0)
        reason = "sys.exit() was called"
    else:
        return None
    return reason


def _user_traceback(error: BaseException):
    """The traceback from the user's first frame on."""
    traceback = error.__traceback__
    while (
        traceback
        and traceback.tb_frame.f_code.co_filename.startswith(_PACKAGE)
        and traceback.tb_next
    ):
        traceback = traceback.tb_next
    if traceback and traceback.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        return None
    return traceback


def _format(error: BaseException) -> str:
    import traceback

    lines = traceback.format_exception(type(error), error, _user_traceback(error))
    if lines and lines[0].startswith("Traceback (most recent call last)"):
        lines = lines[1:]
    return "".join(lines).rstrip("\n")


def _pickled(cause: BaseException) -> bytes:
    from ray import cloudpickle

    try:
        return cloudpickle.dumps(cause)
    except Exception as why:
        # The traceback's text holds what it said.
        from ray.exceptions import RayError

        return cloudpickle.dumps(
            RayError(
                f"Exception {type(cause).__module__}.{type(cause).__qualname__} isn't serializable: {why}."
            )
        )


def _actor_repr(instance) -> str:
    if instance is None or type(instance).__repr__ is object.__repr__:
        return "" if instance is None else object.__repr__(instance)
    try:
        return repr(instance)
    except Exception:
        return object.__repr__(instance)


def actor_marker(instance) -> str:
    """The log marker of an actor's methods: its repr when its class has one."""
    name = (
        type(instance).__name__
        if type(instance).__repr__ is object.__repr__
        else _actor_repr(instance)
    )
    return ":actor_name:" + str(name).replace("\n", " ")


def _forget_locals(error: BaseException | None):
    """What a failed task's frames held goes with the task, not when the collector finds the cycle of an exception and the frame that names it."""
    import traceback

    for _ in range(10):
        if error is None:
            return
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def _matches(error: BaseException, retry_types) -> bool:
    if retry_types is None:
        return isinstance(error, Exception)
    return isinstance(error, retry_types)


def _means_cancelled(error) -> bool:
    """KeyboardInterrupt, and the end of a coroutine of an asyncio actor: by ray.cancel or by hand, they are the same."""
    if isinstance(error, KeyboardInterrupt):
        return True
    return "ray._private.async_actor" in sys.modules and isinstance(
        error, sys.modules["asyncio"].CancelledError
    )


def describe_error(error, instance, retry_types, proctitle: str, task_id: bytes):
    """(message, traceback text, cause's class, pickled cause, actor's repr, whether retry_exceptions names it)"""
    from ray.exceptions import RayTaskError, TaskCancelledError

    if error is None:
        error = RuntimeError("the task failed without an exception")
    if _means_cancelled(error):
        from ray._private.ids import TaskID

        error = TaskCancelledError(TaskID(task_id)).with_traceback(error.__traceback__)
    # A failure that came up from a task this one waited for keeps its first cause.
    cause = error.cause if isinstance(error, RayTaskError) else error
    kind = type(cause)
    if (
        os.environ.get("RAY_DEBUG_POST_MORTEM") == "1"
        and isinstance(cause, Exception)
        and not isinstance(cause, TaskCancelledError)
    ):
        from ray.util.rpdb import post_mortem

        post_mortem(_user_traceback(error))
    try:
        text = _format(error)
    except Exception:
        text = f"{kind.__name__}: (its text could not be made)"
    try:
        message = f"{kind.__name__}: {cause}"
    except Exception:
        message = kind.__name__
    clean = lambda value: value.replace("\0", "").encode("utf-8", "replace").decode()
    described = (
        clean(message),
        clean(text),
        f"{kind.__module__}.{kind.__qualname__}",
        _pickled(cause),
        clean(_actor_repr(instance)),
        _matches(cause, retry_types),
    )
    _forget_locals(error)
    return described


def report_creation_error(error):
    """To the worker's log, and so to the driver."""
    from ray.exceptions import ActorDiedError, RayTaskError

    if isinstance(error, RayTaskError):
        print(
            f"Exception raised in creation task: {ActorDiedError(error)}",
            file=sys.stderr,
            flush=True,
        )
