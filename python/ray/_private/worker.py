"""Connects and disconnects this process, and the small calls of the public interface."""

from __future__ import annotations

import atexit
import os
import sys
import threading

from ray import _raylet
from ray._private.options import not_in_release

# Describes this runtime to peers that may run another one.
RUNTIME = "Python {}.{}.{}".format(*sys.version_info[:3])
SCRIPT_MODE, WORKER_MODE, SPILL_WORKER_MODE, RESTORE_WORKER_MODE = 0, 1, 2, 3


class Worker:
    """Holds what Python keeps about the connection; one per process, `global_worker`."""

    def __init__(self):
        self.context: dict = {}
        self.mode = None
        self.namespace = ""
        self.default_actor_lifetime = None
        self.code_search_path: list = []  # The path of this process's job.
        # JSON. In a driver the job's environment, in a worker the one that the process was started
        # for.
        self.runtime_env = ""
        self.log_printer = None
        self.node: dict | None = None  # The node that this process started, if any.
        self.address_info: dict = {}
        self.pid = 0

    @property
    def connected(self) -> bool:
        return _raylet.session() != 0

    def check_connected(self):
        if not self.connected:
            raise RuntimeError("Ray has not been started yet: call ray.init() first.")

    def start(self, options: dict):
        _raylet.start({"runtime": RUNTIME, **options})
        self.context = _raylet.context()
        self.namespace = self.context["namespace"]
        self.pid = os.getpid()
        self.mode = SCRIPT_MODE if self.context["is_driver"] else WORKER_MODE

    @property
    def current_job_id(self):
        from ray._private.ids import JobID

        return JobID(self.context["job_id"])

    @property
    def node_id(self) -> str:
        return self.context["node_id"].hex()

    current_node_id = node_id

    @property
    def worker_id(self) -> bytes:
        return self.context["worker_id"]


global_worker = Worker()
_lock = threading.RLock()
# Set by the shutdown at exit: code that runs later must not start a cluster implicitly.
_exited = False


def ensure_connected():
    if not _raylet.session():
        auto_init()


def check_not_forked():
    """Raises RuntimeError in a forked child of a connected process.

    The connection and its threads belong to the parent.
    """
    if _raylet.is_forked():
        raise RuntimeError(
            "This process was forked from one that was connected to Ray, so it cannot use Ray. "
            "Start processes with multiprocessing's 'spawn' method (ray.init() works "
            "there), or fork before ray.init()."
        )


def check_not_exiting():
    """Raises RuntimeError once the interpreter is finalizing.

    No thread can start then, so that connecting would wait for ever.
    """
    if sys.is_finalizing():
        raise RuntimeError("The interpreter is exiting: ray cannot be used any more.")


def auto_init():
    """Connects a program that makes its first remote call without having called ray.init()."""
    check_not_forked()
    check_not_exiting()
    if _exited:
        raise RuntimeError(
            "The interpreter is exiting and ray was shut down: it cannot be used any more."
        )
    if global_worker.mode == WORKER_MODE:
        raise RuntimeError("this worker was disconnected from its cluster")
    if os.environ.get("RAY_ENABLE_AUTO_CONNECT", "1") == "0":
        from ray.exceptions import RaySystemError

        raise RaySystemError("Ray has not been started yet. You can start Ray with 'ray.init()'.")
    with _lock:
        if not _raylet.session():
            from ray._private.init import init

            init()


def is_initialized() -> bool:
    """Whether this process is connected to a cluster."""
    return global_worker.connected


def current_task_info() -> dict | None:
    """Describes the running task, also inside coroutines of asyncio actors. None on drivers.

    In other threads it describes the process: its actor, its job, the resources and the id of the
    task that began last, without names.
    """
    info = _raylet.task_info()
    if info is None and "ray._private.async_actor" in sys.modules:
        call = sys.modules["ray._private.async_actor"].current_call.get()
        if call is not None:
            return call.info()
    return info or _raylet.process_info()


def put(value, *, _owner=None, _tensor_transport=None):
    """Stores a value; returns its ObjectRef.

    Raises TypeError for ObjectRefs and for values that cannot be pickled.
    """
    if _owner is not None:
        raise ValueError("ray.put(_owner=...) is not supported: the caller owns what it puts")
    if _tensor_transport not in (None, "object_store", "OBJECT_STORE"):
        raise not_in_release("tensor transports")
    return _raylet.put_value(value)


def remote(*args, **options):
    """Makes a function or class remote: @ray.remote, @ray.remote(num_cpus=2, ...)."""
    if (
        len(args) == 1
        and not options
        and (callable(args[0]) or not isinstance(args[0], (int, float, str)))
    ):
        return _make_remote(args[0], {})
    assert not args and options, (
        "The @ray.remote decorator must be applied either with no arguments and no parentheses, "
        "for example '@ray.remote', "
        "or it must be applied using some of the arguments in the list of valid options, for "
        "example '@ray.remote(num_returns=2, resources={\"CustomResource\": 1})'."
    )
    # An unknown option is reported where it is written, before anything is decorated.
    from ray._private.options import ACTOR, TASK

    unknown = [key for key in options if key not in TASK and key not in ACTOR]
    if unknown:
        raise ValueError(
            f"Invalid option keyword {unknown[0]} for remote functions or actors. Valid ones are "
            f"{sorted({**TASK, **ACTOR})}."
        )
    return lambda target: _make_remote(target, options)


def _make_remote(target, options: dict):
    if isinstance(target, type):
        from ray.actor import make_actor_class

        return make_actor_class(target, options)
    function_like = hasattr(target, "__code__") or type(target).__name__ in (
        "builtin_function_or_method",
        "cython_function_or_method",
        "method",
    )
    if function_like:
        from ray.remote_function import make_remote_function

        return make_remote_function(target, options)
    raise TypeError("The @ray.remote decorator must be applied to either a function or a class.")


def get_actor(name: str, namespace: str | None = None):
    """Returns a handle to a named actor, which does not keep the actor alive.

    Raises ValueError when there is no such actor.
    """
    if not name:
        raise ValueError("Please supply a non-empty value to get_actor")
    if namespace is not None:
        if not isinstance(namespace, str):
            raise TypeError(f"namespace must be None or a string, got {type(namespace).__name__}")
        if not namespace:
            raise ValueError('"" is not a valid namespace. Pass None to not specify a namespace.')
    ensure_connected()
    from ray.actor import ActorHandle, HandleInfo

    found = _raylet.get_actor(name, namespace or current_namespace())
    if found is None:
        raise ValueError(
            f"Failed to look up actor with name '{name}'. This could because 1. You are trying "
            "to look up a named actor you didn't create. "
            "2. The named actor died. 3. You did not use a namespace matching the namespace of "
            "the actor."
        )
    core, info = found
    if not info["handle_blob"]:
        from ray._private.foreign import handle_blob_of

        return ActorHandle(
            core, HandleInfo.of(handle_blob_of(info["language"], info["class_name"]))
        )
    return ActorHandle(core, HandleInfo.of(info["handle_blob"]))


def current_namespace() -> str:
    task = current_task_info() if global_worker.mode == WORKER_MODE else None
    return (task or {}).get("namespace") or global_worker.namespace


def kill(actor, *, no_restart: bool = True):
    """Ends an actor's process at once; with no_restart=False its max_restarts apply."""
    from ray.actor import ActorHandle

    if not isinstance(actor, ActorHandle):
        raise ValueError(
            "ray.kill() only supported for actors. For tasks, try ray.cancel(). Got: "
            f"{type(actor)}."
        )
    ensure_connected()
    if actor._core.session() != _raylet.session():
        from ray.exceptions import ActorHandleNotFoundError

        raise ActorHandleNotFoundError(
            f"The handle to {actor!r} belongs to a session that was shut down."
        )
    actor._core.kill(no_restart)


def cancel(ref, *, force: bool = False, recursive: bool = True):
    """Cancels a task.

    A queued task never starts, a running one gets KeyboardInterrupt, or with force=True its worker
    is killed.
    """
    if isinstance(ref, _raylet.ObjectRefGenerator):
        ref = ref.completed()
    if not isinstance(ref, _raylet.ObjectRef):
        raise TypeError(f"ray.cancel() only supported for object refs. Got: {type(ref)}.")
    if force and not ref.task_id().actor_id().binary().startswith(b"\xff" * 12):
        raise ValueError("force=True is not supported for actor tasks.")
    ensure_connected()
    _raylet.cancel(ref, force, recursive)


def get_gpu_ids() -> list:
    """Returns the GPUs that the running task or its actor was given; none on a driver.

    They are numbers, or the names in the node's CUDA_VISIBLE_DEVICES.
    """
    task = current_task_info()
    if not task or not task["gpu_ids"]:
        return []
    from ray._private.accelerators import public_ids

    return public_ids(task["gpu_ids"])


def shutdown(*, wait_for_processes: bool = False, _exiting_interpreter: bool = False):
    """Disconnects, and ends the cluster if ray.init() started it.

    It may be called at any time, and more than once.
    """
    from ray._private.interrupts import deferred_interrupts

    global _exited
    _exited = _exited or _exiting_interpreter
    worker = global_worker
    if worker.mode == WORKER_MODE or (worker.pid and worker.pid != os.getpid()):
        return  # A forked child must not touch its parent's connection.
    with _lock, deferred_interrupts():
        printer, worker.log_printer = worker.log_printer, None
        if printer and worker.connected:
            printer.settle()
        _raylet.stop()
        if "ray._private.futures" in sys.modules:
            sys.modules["ray._private.futures"].end_session()
        if printer:
            printer.stop()
        node, worker.node = worker.node, None
        if node:
            from ray._private.local_cluster import stop_cluster

            stop_cluster(node, wait_for_processes)
        worker.mode = None
        worker.context, worker.address_info = {}, {}


# Registered at import, not by init(): exit functions that the program registers later run earlier,
# while the cluster is still there.
atexit.register(shutdown, _exiting_interpreter=True)
