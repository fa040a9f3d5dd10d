"""What an actor is owed that leaves by itself: its last handle went, exit_actor(), __ray_terminate__. One that is killed, or whose job ended, gets nothing of it."""
from __future__ import annotations

import sys

from ray import _raylet

_PATIENCE_S = 120.0     # for all of it; then the process ends, and its log says where it was


def run_hooks():
    """__ray_shutdown__, then __del__ by dropping the instance, then what the actor registered with atexit. Failures go to stderr. Nothing in other processes."""
    instance = _raylet.take_actor()
    if instance is None:
        return
    import atexit
    import faulthandler
    import gc
    faulthandler.dump_traceback_later(_PATIENCE_S, exit=True, file=2)
    hook = getattr(instance, "__ray_shutdown__", None)
    if hook is not None:
        try:
            _wait_for(hook())
        except BaseException:
            import traceback
            traceback.print_exc()
    hook = instance = None
    gc.collect()
    atexit._run_exitfuncs()


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
