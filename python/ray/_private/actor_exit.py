"""How an actor's code ends its actor: ray.actor.exit_actor()."""

from __future__ import annotations

import sys
import threading

from ray import _raylet


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
