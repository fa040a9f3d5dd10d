"""Actors that end by their own wish: what had started is answered, nothing else is."""
import asyncio
import threading

import pytest

import ray
from ray.exceptions import ActorDiedError

pytestmark = pytest.mark.usefixtures("cluster")


class Plain:
    def leave(self):
        ray.actor.exit_actor()

    def m(self):
        return 1


class Threaded(Plain):
    def __init__(self):
        self.entered, self.released = threading.Event(), threading.Event()

    def hold(self):
        self.entered.set()
        self.released.wait(60)
        return "held"

    def held(self):
        return self.entered.wait(60)

    def release_and_leave(self):
        threading.Timer(0.2, self.released.set).start()
        ray.actor.exit_actor()


class Async:
    def __init__(self):
        self.entered, self.released = asyncio.Event(), asyncio.Event()

    async def leave(self):
        ray.actor.exit_actor()

    async def m(self):
        return 1

    async def hold(self):
        self.entered.set()
        await self.released.wait()
        return "held"

    async def held(self):
        return await self.entered.wait()

    async def release_and_leave(self):
        asyncio.get_running_loop().call_later(0.2, self.released.set)
        ray.actor.exit_actor()


KINDS = {"plain": ray.remote(Plain), "threaded": ray.remote(max_concurrency=3)(Threaded), "async": ray.remote(Async)}


@pytest.mark.parametrize("end", ["leave", "__ray_terminate__"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_call_is_answered_after_the_end_was(kind, end):
    for _ in range(5):
        actor = KINDS[kind].options(max_restarts=5, max_task_retries=5).remote()
        assert ray.get(actor.m.remote()) == 1
        ended = getattr(actor, end).remote()
        with pytest.raises(ActorDiedError):
            ray.get(ended, timeout=60)
        for ref in [actor.m.remote() for _ in range(100)]:
            with pytest.raises(ActorDiedError):
                ray.get(ref, timeout=60)


@pytest.mark.parametrize("kind", ["threaded", "async"])
def test_calls_that_run_are_answered(kind):
    actor = KINDS[kind].remote()
    running = actor.hold.remote()
    assert ray.get(actor.held.remote(), timeout=60)
    with pytest.raises(ActorDiedError):
        ray.get(actor.release_and_leave.remote(), timeout=60)
    later = actor.m.remote()
    assert ray.get(running, timeout=60) == "held"
    with pytest.raises(ActorDiedError):
        ray.get(later, timeout=60)
