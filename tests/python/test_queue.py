"""ray.util.queue.Queue keeps its order and its size limit among tasks, actors and coroutines."""

import asyncio
import queue

import pytest

import ray
from ray.exceptions import RayActorError, RayTaskError
from ray.util.queue import Empty, Full, Queue

pytestmark = pytest.mark.usefixtures("cluster")


@ray.remote
def feed(shared, items):
    for item in items:
        shared.put(item)


@ray.remote
def drain(shared, count):
    return [shared.get() for _ in range(count)]


def test_first_in_first_out():
    shared = Queue()
    items = [1, None, "two", {"three": 3}]
    for item in items:
        shared.put(item)
    assert (
        shared.size() == shared.qsize() == len(shared) == 4
        and not shared.empty()
        and not shared.full()
    )
    assert [shared.get() for _ in items] == items
    assert shared.empty()


def test_calls_without_waiting_raise_at_once():
    shared = Queue(maxsize=1)
    for take in (
        shared.get_nowait,
        lambda: shared.get(block=False),
        lambda: shared.get(block=False, timeout=-1),
    ):
        with pytest.raises(Empty) as caught:
            take()
        assert isinstance(caught.value, queue.Empty) and not isinstance(caught.value, RayTaskError)
    shared.put_nowait(1)
    assert shared.full()
    for give in (shared.put_nowait, lambda item: shared.put(item, block=False)):
        with pytest.raises(Full) as caught:
            give(2)
        assert isinstance(caught.value, queue.Full) and not isinstance(caught.value, RayTaskError)
    assert shared.get_nowait() == 1


def test_timeouts():
    shared = Queue(maxsize=1)
    with pytest.raises(Empty) as caught:
        shared.get(timeout=0.01)
    assert isinstance(caught.value, RayTaskError)
    shared.put(1)
    with pytest.raises(Full) as caught:
        shared.put(2, timeout=0)
    assert isinstance(caught.value, RayTaskError)
    for call in (
        lambda: shared.get(timeout=-1),
        lambda: shared.put(1, timeout=-0.1),
        lambda: asyncio.run(shared.get_async(timeout=-1)),
        lambda: asyncio.run(shared.put_async(1, timeout=-1)),
    ):
        with pytest.raises(ValueError):
            call()
    assert shared.get() == 1


def test_a_queue_without_maxsize_is_never_full():
    for maxsize in (0, -1):
        shared = Queue(maxsize)
        shared.put_nowait_batch(range(100))
        assert not shared.full() and len(shared) == 100


def test_batches():
    shared = Queue(maxsize=3)
    shared.put_nowait_batch(iter([1, 2]))
    with pytest.raises(Full, match="Cannot add 2 items to queue of size 2 and maxsize 3"):
        shared.put_nowait_batch([3, 4])
    with pytest.raises(Empty, match="Cannot get 3 items from queue of size 2"):
        shared.get_nowait_batch(3)
    assert len(shared) == 2
    assert shared.get_nowait_batch(0) == [] and shared.get_nowait_batch(2) == [1, 2]
    for wrong, error in ((1.5, TypeError), ("1", TypeError), (-1, ValueError)):
        with pytest.raises(error):
            shared.get_nowait_batch(wrong)
    with pytest.raises(TypeError):
        shared.put_nowait_batch(3)


def test_getters_wait_for_other_processes():
    shared = Queue()
    taken = drain.remote(shared, 3)
    ray.get(feed.remote(shared, [1, 2, 3]))
    assert ray.get(taken) == [1, 2, 3]


def test_putters_wait_for_room():
    shared = Queue(maxsize=1)
    fed = feed.remote(shared, range(5))
    assert [shared.get() for _ in range(5)] == list(range(5))
    ray.get(fed)


def test_coroutines():
    async def both(shared):
        await shared.put_async(1)
        with pytest.raises(Full):
            await shared.put_async(2, block=False)
        with pytest.raises(Full):
            await shared.put_async(2, timeout=0.01)
        assert await shared.get_async() == 1
        with pytest.raises(Empty):
            await shared.get_async(block=False)
        with pytest.raises(Empty):
            await shared.get_async(timeout=0.01)
        taken = asyncio.ensure_future(shared.get_async())
        await shared.put_async(3)
        return await taken

    assert asyncio.run(both(Queue(maxsize=1))) == 3


def test_inside_an_async_actor():
    @ray.remote
    class Consumer:
        async def total(self, shared, count):
            return sum(await asyncio.gather(*(shared.get_async() for _ in range(count))))

    shared = Queue()
    consumer = Consumer.remote()
    total = consumer.total.remote(shared, 3)
    shared.put_nowait_batch([1, 2, 3])
    assert ray.get(total) == 6


def test_actor_options():
    shared = Queue(actor_options={"name": "the queue", "num_cpus": 0})
    assert ray.get_actor("the queue") == shared.actor
    with pytest.raises(ValueError):
        Queue(actor_options={"nonsense": 1})


@pytest.mark.parametrize("force", [False, True])
def test_shutdown(force):
    shared = Queue()
    shared.put(1)
    actor = shared.actor
    shared.shutdown(force=force)
    assert shared.actor is None
    with pytest.raises(AttributeError):
        shared.qsize()
    with pytest.raises(RayActorError):
        ray.get(actor.qsize.remote())
    shared.shutdown()


def test_shutdown_does_not_wait_for_ever():
    shared = Queue()
    waiting = shared.actor.get.remote()
    shared.shutdown(grace_period_s=0)
    with pytest.raises(RayActorError):
        ray.get(waiting)


def test_the_deprecated_name():
    import ray.experimental

    assert ray.experimental.queue is ray.util.queue
