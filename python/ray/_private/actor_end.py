"""What an actor is owed that leaves by itself: its last handle went, exit_actor(), __ray_terminate__, a SIGTERM while it is idle. One that is killed, or is idle
when its job ends, gets nothing of it. A worker of tasks that leaves, or gets a SIGTERM, runs what was registered with atexit."""

from __future__ import annotations

import sys

from ray import _raylet

_PATIENCE_S = 120.0  # for all of it; then the process ends, and its log says where it was
_callbacks_before = 0


def run_hooks():
    """An actor's __ray_shutdown__, then its __del__ by dropping the instance, then what this process registered with atexit. Failures go to stderr."""
    instance = _raylet.take_actor()
    if instance is not None:
        import gc

        _limit_time()
        hook = getattr(instance, "__ray_shutdown__", None)
        if hook is not None:
            try:
                _wait_for(hook())
            except BaseException:
                import traceback

                traceback.print_exc()
        hook = instance = None
        gc.collect()
    run_exit_functions()


def run_exit_functions():
    """What user code registered with atexit."""
    import atexit

    if atexit._ncallbacks() > _callbacks_before:
        _limit_time()
        atexit._run_exitfuncs()


def note_exit_functions():
    """Those that are there now are not the program's."""
    global _callbacks_before
    import atexit

    _callbacks_before = atexit._ncallbacks()


def _limit_time():
    import faulthandler

    faulthandler.dump_traceback_later(_PATIENCE_S, exit=True, file=2)


def _wait_for(result):
    """The hook of an asyncio actor may be a coroutine: it runs in the actor's loop."""
    if not hasattr(result, "__await__"):
        return
    import asyncio

    loop = getattr(sys.modules.get("ray._private.async_actor"), "actor_loop", None)
    if loop is None:
        asyncio.run(result)
    else:
        asyncio.run_coroutine_threadsafe(result, loop).result()
