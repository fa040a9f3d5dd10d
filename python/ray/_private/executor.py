"""The Python half of executing tasks: it loads functions and describes failures.

binding/executor.cc calls it with no Python exception pending.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
import time
import traceback
from collections import namedtuple

from ray import _raylet, cloudpickle

# Imported here because it must see the environment before the first task changes it.
from ray._private import accelerators as _accelerators  # noqa: F401
from ray._private.actor_end import ActorExit
from ray._private.ending import end_process
from ray._private.session import RUNTIME, global_worker
from ray._private.signature import is_coroutine
from ray.exceptions import ActorDiedError, RayError, RayTaskError, TaskCancelledError

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_functions: dict[bytes, object] = {}
# The node-manager sets RAY_RAYLET_PID. Without it this is the fork server, which the node-manager
# started.
node_manager_pid = int(os.environ.get("RAY_RAYLET_PID") or os.getppid())


def _omp_set_by_user() -> bool:
    """Whether the user set OMP_NUM_THREADS.

    The node-manager gives its workers a default, so only its own environment tells.
    """
    try:
        with open(f"/proc/{node_manager_pid}/environ", "rb") as environ:
            return any(
                entry.startswith(b"OMP_NUM_THREADS=") for entry in environ.read().split(b"\0")
            )
    except OSError:
        return "OMP_NUM_THREADS" in os.environ


_user_omp = _omp_set_by_user()
_applied_path: list[str] = []
# The entries of sys.path that the runtime environment added; they come first.
environment_path: list[str] = []
current_job = ""  # The job's id in hex, for log markers.


def load_function(key: bytes, blob: bytes):
    """Returns the function or class of a descriptor; it is unpickled once per process."""
    function = _functions.get(key)
    if function is None:
        start_us = time.time_ns() // 1000
        if not blob:
            blob = _raylet.kv_get("fun", key.hex())
            if blob is None:
                raise RuntimeError(
                    f"the definition {key.hex()} is not in the cluster's key-value store: was "
                    "its job ended?"
                )
        function = _functions[key] = pickle.loads(blob)
        if _raylet.is_profiling() and not isinstance(function, type):
            _raylet.record_span("wait_for_function", start_us, "")
    return function


def load_constructor(key: bytes, blob: bytes):
    """Returns the callable that makes an instance of an actor's class.

    That is the class itself, or, where __init__ is a coroutine function, a coroutine function
    whose result is the instance.
    """
    cls = load_function(key, blob)
    if not is_coroutine(cls.__init__):
        return cls

    async def construct(*args, **kwargs):
        instance = cls.__new__(cls, *args, **kwargs)
        await instance.__init__(*args, **kwargs)
        return instance

    return construct


def load_retry_types(blob: bytes) -> tuple:
    return tuple(pickle.loads(blob))


def actor_method(instance, name: str):
    if name == "__ray_ready__":
        return lambda: True
    if name == "__ray_call__":
        return lambda function, *args, **kwargs: function(instance, *args, **kwargs)
    if name == "__ray_terminate__":
        return _terminate
    # Found on the class, because an attribute that __init__ sets may have a method's name.
    cls = type(instance)
    for base in cls.__mro__:
        if name in base.__dict__:
            method = base.__dict__[name]
            return method.__get__(instance, cls) if hasattr(method, "__get__") else method
    return getattr(instance, name)


def _terminate():
    raise ActorExit("__ray_terminate__() was called")


def check_runtime(drivers: str):
    """Raises RuntimeError when the driver runs another minor version of Python.

    Pickles are not portable between minor versions. `drivers` reads "Python 3.12.1", or is empty
    when the version is unknown.
    """
    if drivers and drivers.rpartition(".")[0] != RUNTIME.rpartition(".")[0]:
        raise RuntimeError(
            f"Version mismatch: the driver runs {drivers}, the workers of the node "
            f"{_raylet.context()['node_ip']} run {RUNTIME} ({sys.executable}). "
            "Use the same minor version of Python on every machine."
        )


def apply_job_config(
    job_id: str,
    sys_path: list,
    code_search_path: list,
    logging_config: str,
    runtime: str,
    default_actor_lifetime: str,
):
    """Makes the driver's modules importable, in place of the previous job's."""
    check_runtime(runtime)
    global_worker.code_search_path = code_search_path
    global_worker.default_actor_lifetime = default_actor_lifetime or None
    # A C++ program calls Python modules by name; they lie beside its libraries.
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
    """Limits math libraries to the CPUs that the task asked for, unless the user set a number."""
    if not _user_omp:
        os.environ["OMP_NUM_THREADS"] = str(threads)
        # A torch that is loaded already (runtime_env "preload") has read the variable.
        set_threads = getattr(sys.modules.get("torch"), "set_num_threads", None)
        if set_threads is not None:
            set_threads(threads)


def keep_omp_threads():
    """Makes set_omp_threads() respect the OMP_NUM_THREADS of the runtime environment."""
    global _user_omp
    _user_omp = True


def start_pool_thread():
    threading.Thread(target=_raylet.run_pool_thread, name="ray_actor_pool", daemon=True).start()


def split_returns(result, count: int) -> tuple:
    """Splits the result of a task with num_returns=count into (values, failure).

    Values that a generator yields before it fails or ends early are results all the same.
    """
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
    try:
        length = len(result)
    except TypeError as error:
        # The text stays Ray's, and the note explains it. Python has notes from 3.11 on.
        if hasattr(error, "add_note"):
            error.add_note(
                f"The function returned a value of type {type(result).__name__}, although "
                f"num_returns={count} asks for a sequence of {count} values."
            )
        raise
    if length != count:
        raise ValueError(f"Task returned {length} objects, but num_returns={count}.")
    return list(result), None


def exit_reason(error: BaseException, is_actor: bool):
    """The message for callers when `error` means that this process wants to end, else None.

    Does not return for a SystemExit that ends the process as a crash: any in a task, and one with
    a code other than 0 in an actor.
    """
    if isinstance(error, ActorExit):
        reason = str(error) or "exit_actor() was called"
    elif isinstance(error, SystemExit):
        code = error.code
        if not is_actor or code not in (None, 0):
            # The process ends as the interpreter would end it: the owner sees a worker that died.
            if code is not None and not isinstance(code, int):
                print(code, file=sys.stderr)
                code = 1

            end_process(error, code or 0)
        reason = "sys.exit() was called"
    else:
        return None
    return reason


def _user_traceback(error: BaseException):
    """The part of the traceback that begins with the first frame outside this package."""
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
    lines = traceback.format_exception(type(error), error, _user_traceback(error))
    if lines and lines[0].startswith("Traceback (most recent call last)"):
        lines = lines[1:]
    return "".join(lines).rstrip("\n")


def _pickled(cause: BaseException) -> bytes:
    try:
        return cloudpickle.dumps(cause)
    except Exception as why:
        # No message is lost: the text of the traceback has that of the exception.

        return cloudpickle.dumps(
            RayError(
                f"Exception {type(cause).__module__}.{type(cause).__qualname__} isn't "
                f"serializable: {why}."
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
    """The log marker of an actor's methods: its repr when its class defines one, else the class."""
    name = (
        type(instance).__name__
        if type(instance).__repr__ is object.__repr__
        else _actor_repr(instance)
    )
    return ":actor_name:" + str(name).replace("\n", " ")


def _forget_locals(error: BaseException | None):
    """Clears the local variables of a failed task's frames when the task ends.

    They would live on until the collector finds the cycle of an exception and a frame that names
    it.
    """
    for _ in range(10):
        if error is None:
            return
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def _matches(error: BaseException, cause: BaseException, retry_types) -> bool:
    if retry_types is None:
        return isinstance(cause, Exception)
    # A program may name what its function raised, such as RayTaskError, or the reason of that.
    return isinstance(error, retry_types) or isinstance(cause, retry_types)


def _means_cancelled(error) -> bool:
    """Whether `error` ends a task as cancelled.

    That is a KeyboardInterrupt, or the CancelledError of a coroutine of an asyncio actor, no
    matter whether ray.cancel or user code raised it.
    """
    if isinstance(error, KeyboardInterrupt):
        return True
    return "ray._private.async_actor" in sys.modules and isinstance(
        error, sys.modules["asyncio"].CancelledError
    )


# A failure as the owner of the task learns of it; the binding reads it by place. `cause` is a
# pickle, and `is_retried` says whether retry_exceptions names the error or its cause.
Failure = namedtuple(
    "Failure", ("message", "traceback", "cause_class", "cause", "actor_repr", "is_retried")
)


def describe_error(error, instance, retry_types, proctitle: str, task_id: bytes) -> Failure:
    """Describes a failure for the owner of the task, and clears the frames of `error`."""
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
    described = Failure(
        message=clean(message),
        traceback=clean(text),
        cause_class=f"{kind.__module__}.{kind.__qualname__}",
        cause=_pickled(cause),
        actor_repr=clean(_actor_repr(instance)),
        is_retried=_matches(error, cause, retry_types),
    )
    _forget_locals(error)
    return described


def report_creation_error(error):
    """Prints the failure to the worker's log, which the driver shows."""
    if isinstance(error, RayTaskError):
        print(
            f"Exception raised in creation task: {ActorDiedError(error)}",
            file=sys.stderr,
            flush=True,
        )
