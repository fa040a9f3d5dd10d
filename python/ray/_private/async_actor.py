"""The event loops of an asyncio actor, one for each of its concurrency groups.

Calls are queued without the GIL; one wake-up of the loop starts all that wait.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import os
import threading

from ray import _raylet
from ray._private import futures

current_call: contextvars.ContextVar = contextvars.ContextVar("ray_current_call", default=None)
_warned = False


class ActorLoop:
    """The event loop of one concurrency group; it runs in its own thread until the process ends.

    The queue limits how many coroutines run at a time (worker/core/call_groups.h).
    """

    def __init__(self, group: int):
        self.group = group
        self.loop = asyncio.new_event_loop()
        # Maps a call to its asyncio.Task.
        self.tasks: dict = {}
        # Calls whose asyncio.Task was cancelled. The caller gets the cancellation, whatever the
        # coroutine does about it.
        self.cancelled: set = set()

    def run(self):
        asyncio.set_event_loop(self.loop)
        _raylet.mark_event_loop_thread()
        self.loop.add_reader(_raylet.call_queue_fd(self.group), self.drain)
        futures.before_completions[self.loop] = self.take_cancellations
        self.loop.run_forever()

    def drain(self):
        for call in _raylet.take_calls(self.group):
            self.start(call)
        self.take_cancellations()

    def take_cancellations(self) -> bool:
        """Cancels the tasks of calls that were cancelled; returns whether it looked for any."""
        news = _raylet.take_cancel_news(self.group)
        if news:
            for call, task in list(self.tasks.items()):
                if call.take_cancel():
                    self.cancelled.add(call)
                    if inspect.getcoroutinestate(task.get_coro()) == inspect.CORO_CREATED:
                        # The cancellation is deferred until the task has made its first step. A
                        # task that is cancelled before that would never run, and so never answer.
                        self.loop.call_soon(task.cancel)
                    else:
                        # The cancellation comes at once, so that the coroutine gets it and not the
                        # error of a child that was cancelled with it and has just answered.
                        task.cancel()
        return news

    def start(self, call):
        token = current_call.set(call)
        try:
            coroutine = call.begin()
            if coroutine is not None:
                drive = self.stream if hasattr(coroutine, "__anext__") else self.drive
                self.tasks[call] = self.loop.create_task(drive(call, coroutine))
        finally:
            current_call.reset(token)

    async def drive(self, call, coroutine):
        try:
            result = await coroutine
        except BaseException as error:
            self.end(call, call.fail, error)
        else:
            self.end(call, call.finish, result)
            result = None

    async def stream(self, call, generator):
        try:
            try:
                async for item in generator:
                    if call in self.cancelled:
                        break
                    call.item(item)
                    item = None
                    # Yields to the loop, which a generator that never waits would block.
                    await asyncio.sleep(0)
            finally:
                await generator.aclose()
        except BaseException as error:
            self.end(call, call.fail, error)
        else:
            self.end(call, call.end)

    def end(self, call, answer, *result):
        if call in self.cancelled:
            self.cancelled.discard(call)
            call.fail(asyncio.CancelledError())
        else:
            answer(*result)
        self.tasks.pop(call, None)


actor_loop: asyncio.AbstractEventLoop | None = None  # The loop of the default group.


def start(groups: list[str]):
    """Starts one loop and thread for each concurrency group.

    `groups` holds the names of the groups by number; the default group is number 0 and named "".
    The constructor runs in its loop.
    """
    global actor_loop
    for number, name in enumerate(groups):
        actor = ActorLoop(number)
        actor_loop = actor_loop or actor.loop
        threading.Thread(
            target=actor.run, name=f"AsyncIO Thread: {name or 'default'}", daemon=True
        ).start()


def warn_blocking_get():
    """Warns, once per process, that a ray.get waiting inside the loop stops every other call."""
    global _warned
    if _warned or os.environ.get("RAY_WARN_BLOCKING_GET_INSIDE_ASYNC", "1") in ("0", "false"):
        return
    _warned = True

    logging.getLogger("ray").warning(
        "Using blocking ray.get inside async actor. This blocks the event loop. Please use "
        "`await` on object ref with asyncio.gather if you want to yield execution to the event "
        "loop instead."
    )
