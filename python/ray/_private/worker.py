"""The small calls of the public interface; session.py has the connection that they use."""

from __future__ import annotations

import os

from ray import _raylet
from ray._private.absent import not_in_release

# Programs use several of these as attributes of this module.
from ray._private.session import (
    RESTORE_WORKER_MODE,
    RUNTIME,
    SCRIPT_MODE,
    SPILL_WORKER_MODE,
    WORKER_MODE,
    Worker,
    check_may_connect,
    connect_with,
    current_namespace,
    current_task_info,
    ensure_connected,
    global_worker,
    is_initialized,
    lock,
    shutdown,
)

__all__ = [
    "RESTORE_WORKER_MODE",
    "RUNTIME",
    "SCRIPT_MODE",
    "SPILL_WORKER_MODE",
    "WORKER_MODE",
    "Worker",
    "cancel",
    "get_actor",
    "get_gpu_ids",
    "global_worker",
    "is_initialized",
    "kill",
    "put",
    "remote",
    "shutdown",
]


def auto_init():
    """Connects a program that makes its first remote call without having called ray.init()."""
    check_may_connect()
    if os.environ.get("RAY_ENABLE_AUTO_CONNECT", "1") == "0":
        from ray.exceptions import RaySystemError

        raise RaySystemError("Ray has not been started yet. You can start Ray with 'ray.init()'.")
    with lock:
        if not _raylet.session():
            from ray._private.init import init

            init()


connect_with(auto_init)


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
    from ray._private.actor_handle import named_handle

    handle = named_handle(name, namespace or current_namespace())
    if handle is None:
        raise ValueError(
            f"Failed to look up actor with name '{name}'. This could because 1. You are trying "
            "to look up a named actor you didn't create. "
            "2. The named actor died. 3. You did not use a namespace matching the namespace of "
            "the actor."
        )
    return handle


def kill(actor, *, no_restart: bool = True):
    """Ends an actor's process at once; with no_restart=False its max_restarts apply."""
    from ray._private.actor_handle import ActorHandle, handle_outlived, of_this_session

    if not isinstance(actor, ActorHandle):
        raise ValueError(
            "ray.kill() only supported for actors. For tasks, try ray.cancel(). Got: "
            f"{type(actor)}."
        )
    ensure_connected()
    if not of_this_session(actor._core):
        raise handle_outlived(repr(actor))
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
