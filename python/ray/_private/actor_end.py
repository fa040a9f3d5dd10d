"""How an actor ends itself, and the user code that runs when a worker leaves by itself.

An actor leaves by itself when its last handle is gone, after exit_actor() or __ray_terminate__, or
on a SIGTERM while it is idle: its hooks run, then the functions registered with atexit. A worker
of tasks that leaves or gets a SIGTERM runs only the latter. An actor that is killed, or is idle
when its job ends, runs neither.
"""

from __future__ import annotations

import atexit
import faulthandler
import gc
import sys
import threading
import traceback

from ray import _raylet

# Hooks and exit functions get so many seconds. After that the process ends, and its log shows what
# the process was doing.
_PATIENCE_S = 120.0
_callbacks_before = 0


class ActorExit(BaseException):
    """Raised by ray.actor.exit_actor().

    A BaseException, so that no `except Exception` of a method stops it.
    """


def leave(reason: str):
    """Ends this actor: raises ActorExit, with which the running call is answered.

    The worker is told at once, since the exception need not reach the call: user code may catch
    it, or runs in an asyncio task or a thread that a call or the constructor has started.
    """
    _raylet.leave_actor(reason)
    if not _raylet.in_task():
        asyncio = sys.modules.get("asyncio.events")
        if asyncio and asyncio._get_running_loop():
            _hide_failure(sys.modules["asyncio"].current_task())
        else:
            _end_threads_silently()
    raise ActorExit(reason)


def _end_threads_silently():
    """Keeps `threading` from reporting an ActorExit that ends a thread of the user.

    A SystemExit would end it silently, too, but also every asyncio loop whose task awaits it.
    """
    report = threading.excepthook
    if getattr(report, "is_silent_for_actor_exit", False):
        return

    def report_failures(args, /):
        if not issubclass(args.exc_type, ActorExit):
            report(args)

    report_failures.is_silent_for_actor_exit = True
    threading.excepthook = report_failures


def _hide_failure(task):
    """Keeps an asyncio task that nobody awaits from reporting its exception."""
    if task is not None:
        task.add_done_callback(lambda done: done.cancelled() or done.exception())


def run_hooks():
    """Runs an actor's hooks, then the functions registered with atexit.

    The hooks are __ray_shutdown__, then __del__, which runs because the instance is dropped.
    Failures go to stderr.
    """
    instance = _raylet.take_actor()
    if instance is not None:
        _limit_time()
        hook = getattr(instance, "__ray_shutdown__", None)
        if hook is not None:
            try:
                _wait_for(hook())
            except BaseException:
                traceback.print_exc()
        hook = instance = None
        gc.collect()
    run_exit_functions()


def run_exit_functions():
    """Runs the functions that user code registered with atexit."""
    if atexit._ncallbacks() > _callbacks_before:
        _limit_time()
        atexit._run_exitfuncs()


def note_exit_functions():
    """Counts the exit functions that exist before user code runs and so are not its own."""
    global _callbacks_before

    _callbacks_before = atexit._ncallbacks()


def _limit_time():
    faulthandler.dump_traceback_later(_PATIENCE_S, exit=True, file=2)


def _wait_for(result):
    """Runs the hook to its end: an asyncio actor's may be a coroutine for the actor's loop."""
    if not hasattr(result, "__await__"):
        return
    import asyncio

    loop = getattr(sys.modules.get("ray._private.async_actor"), "actor_loop", None)
    if loop is None:
        asyncio.run(result)
    else:
        asyncio.run_coroutine_threadsafe(result, loop).result()
