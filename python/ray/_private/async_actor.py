"""The event loops of an asyncio actor, one for each of its concurrency groups. Calls arrive in a queue without the GIL; one wake-up of the loop starts all that wait."""

from __future__ import annotations

import asyncio
import contextvars
import threading

from ray import _raylet

current_call: contextvars.ContextVar = contextvars.ContextVar("ray_current_call", default=None)
_warned = False


class ActorLoop:
    """One group's. Runs in its own thread until the process ends. How many coroutines run at a time is the queue's affair (worker/core/call_groups.h)."""

    def __init__(self, group: int):
        self.group = group
        self.loop = asyncio.new_event_loop()
        self.tasks: dict = {}  # call -> asyncio.Task
        self.cancelled: set = (
            set()
        )  # calls whose task was told: whatever it makes of that, its caller gets the cancellation

    def run(self):
        asyncio.set_event_loop(self.loop)
        _raylet.mark_event_loop_thread()
        self.loop.add_reader(_raylet.call_queue_fd(self.group), self.drain)
        self.loop.run_forever()

    def drain(self):
        for call in _raylet.take_calls(self.group):
            self.start(call)
        if _raylet.take_cancel_news(self.group):
            for call, task in list(self.tasks.items()):
                if call.take_cancel():
                    self.cancelled.add(call)
                    self.loop.call_soon(
                        task.cancel
                    )  # after its first step: one that never starts answers nobody

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
                    await asyncio.sleep(0)  # a generator that never waits leaves the loop to others
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


actor_loop: asyncio.AbstractEventLoop | None = None  # of the default group


def start(groups: list[str]):
    """The names of the groups by number, that of the default group is "". The constructor runs in the default group's loop."""
    global actor_loop
    for number, name in enumerate(groups):
        actor = ActorLoop(number)
        actor_loop = actor_loop or actor.loop
        threading.Thread(
            target=actor.run, name=f"AsyncIO Thread: {name or 'default'}", daemon=True
        ).start()


def warn_blocking_get():
    """ray.get that waits inside the loop stops every other call: said once."""
    import os

    global _warned
    if _warned or os.environ.get("RAY_WARN_BLOCKING_GET_INSIDE_ASYNC", "1") in ("0", "false"):
        return
    _warned = True
    import logging

    logging.getLogger("ray").warning(
        "Using blocking ray.get inside async actor. This blocks the event loop. Please use `await` on object ref with asyncio.gather if you want to yield execution to the event loop instead."
    )
