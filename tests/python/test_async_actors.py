"""An actor with coroutine methods runs many calls at once in one event loop."""

import asyncio
import gc
import os
import time
import weakref

import pytest

import ray

pytestmark = pytest.mark.usefixtures("cluster")


@ray.remote
class Async:
    def __init__(self):
        self.running = self.most = 0
        self.event, self.all_are_here = asyncio.Event(), asyncio.Event()

    async def echo(self, x=None):
        return x

    def plain(self):
        return "plain"

    async def track(self, seconds):
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(seconds)
        self.running -= 1
        return self.most

    async def meet(self, number):
        """Ends when `number` calls run at once."""
        self.running += 1
        if self.running == number:
            self.all_are_here.set()
        await asyncio.wait_for(self.all_are_here.wait(), 60)

    async def wait(self):
        await self.event.wait()
        return "woken"

    async def wake(self):
        self.event.set()

    async def boom(self):
        await asyncio.sleep(0)
        raise ValueError("async boom")

    async def fetch(self, refs):
        return await asyncio.gather(*refs)

    async def facts(self):
        before = ray.get_runtime_context().get_task_id()
        await asyncio.sleep(0.05)
        assert asyncio.current_task() is not None
        return (
            before,
            ray.get_runtime_context().get_task_id(),
            ray.get_runtime_context().get_actor_id(),
        )

    async def leave(self):
        ray.actor.exit_actor()


@ray.remote
def slow(x):
    time.sleep(0.1)
    return x


def test_many_calls():
    actor = Async.remote()
    assert ray.get([actor.echo.remote(i) for i in range(1000)]) == list(range(1000))
    assert ray.get(actor.plain.remote()) == "plain"


def test_calls_overlap():
    actor = Async.remote()
    ray.get([actor.meet.remote(20) for _ in range(20)])
    waiting = actor.wait.remote()
    assert ray.wait([waiting], timeout=0.2)[0] == []
    ray.get(actor.wake.remote())
    assert ray.get(waiting, timeout=60) == "woken"


def test_max_concurrency():
    actor = Async.options(max_concurrency=3).remote()
    assert max(ray.get([actor.track.remote(0.05) for _ in range(12)])) == 3


def test_an_error_of_a_coroutine_reaches_its_caller_only():
    actor = Async.remote()
    with pytest.raises(ValueError, match="async boom") as error:
        ray.get(actor.boom.remote())
    assert "async_actor.py" not in str(error.value)
    assert ray.get(actor.echo.remote(1)) == 1


def test_await_references_inside():
    actor = Async.remote()
    assert ray.get(actor.fetch.remote([slow.remote(i) for i in range(4)])) == [0, 1, 2, 3]


def give_up_waiting(actor):
    """Waits in vain in an event loop of its own."""

    async def wait():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(actor.wait.remote(), 0.01)

    asyncio.run(wait())
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def test_closed_loops_leave_no_descriptors():
    actor = Async.remote()
    ray.get(actor.echo.remote())
    counts = [give_up_waiting(actor) for _ in range(22)]
    assert max(counts[2:]) <= max(counts[:2])


def test_waits_that_were_given_up_are_forgotten(monkeypatch):
    actor, pending = Async.remote(), Async.remote()
    monkeypatch.setattr("ray._private.futures._FEWEST_SWEPT", 1)

    async def main():
        assert await actor.echo.remote(1) == 1
        ref = pending.wait.remote()
        known = weakref.ref(ref)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(ref, 0.01)
        del ref
        for i in range(3):
            assert await actor.echo.remote(i) == i
        gc.collect()
        assert known() is None

    asyncio.run(main())


def test_a_wait_that_is_refused_is_forgotten():
    async def main(ref):
        with pytest.raises(ValueError, match="no owner"):
            await ref

    ref = ray.ObjectRef(b"\1" * 28)
    known = weakref.ref(ref)
    asyncio.run(main(ref))
    del ref
    gc.collect()
    assert known() is None


def test_context_belongs_to_the_call():
    actor = Async.remote()
    refs = [actor.facts.remote() for _ in range(5)]
    for ref, (before, after, actor_id) in zip(refs, ray.get(refs)):
        assert before == after == ref.task_id().hex() and actor_id == actor._actor_id.hex()


def test_exit_actor_ends_an_async_actor():
    actor = Async.remote()
    with pytest.raises(ray.exceptions.ActorDiedError):
        ray.get(actor.leave.remote())
