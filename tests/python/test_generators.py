"""Generators: num_returns="streaming" and "dynamic", of tasks and of actors of all kinds."""

import asyncio
import gc
import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest

import ray
from ray.exceptions import RayTaskError, TaskCancelledError, WorkerCrashedError
from waiting import touch, until, wait_for


@pytest.fixture(autouse=True)
def own_cluster(cluster):
    yield


@ray.remote
def count(n):
    yield from range(n)


def values(generator):
    return [ray.get(ref) for ref in generator]


def ids(refs):
    return [int.from_bytes(ref.binary()[24:], "little") for ref in refs]


# ---- streaming


def test_items_in_order_and_their_ids():
    generator = count.remote(2000)
    refs = list(generator)
    assert ids(refs) == list(range(2, 2002)) and ids([generator._generator_ref]) == [1]
    assert ray.get(refs) == list(range(2000))
    assert generator.is_finished() and not generator.next_ready()
    with pytest.raises(StopIteration):
        generator.next()


def test_an_item_is_there_before_the_next_is_made(tmp_path):
    gate = str(tmp_path / "gate")

    @ray.remote
    def f():
        for i in range(3):
            yield i
            wait_for(gate + str(i))

    generator = f.remote()
    for i in range(3):
        assert ray.get(next(generator)) == i
        assert not generator.is_finished() and not generator.next_ready()
        touch(gate + str(i))
    assert list(generator) == []


def test_timeouts(tmp_path):
    gate = str(tmp_path / "gate")

    @ray.remote
    def f():
        wait_for(gate)
        yield 1

    generator = f.remote()
    assert generator._next_sync(0).is_nil() and generator._next_sync(timeout_s=0.01).is_nil()
    ready, rest = ray.wait([generator], timeout=0)
    assert ready == [] and rest == [generator]

    async def main():
        assert (await generator._next_async(timeout_s=0.01)).is_nil()
        touch(gate)
        assert await (await generator._next_async(timeout_s=60)) == 1
        with pytest.raises(StopAsyncIteration):
            await generator._next_async()

    asyncio.run(main())
    with pytest.raises(StopIteration):
        generator._next_sync(0)


def test_wait_takes_generators_and_refs(tmp_path):
    gate = str(tmp_path / "gate")

    @ray.remote
    def slow():
        wait_for(gate)
        yield 1

    blocked, quick = slow.remote(), count.remote(1)
    assert ray.wait([blocked, quick], timeout=60) == ([quick], [blocked])
    assert ray.wait([blocked, quick, ray.put(1)], num_returns=2, timeout=60)[1] == [blocked]
    with pytest.raises(ValueError, match="unique"):
        ray.wait([quick, quick])
    with pytest.raises(TypeError):
        ray.wait(quick)
    touch(gate)
    assert ray.wait([blocked], timeout=60) == ([blocked], [])
    assert values(blocked) == [1]
    assert ray.wait([blocked], timeout=60) == ([blocked], []), "a finished one is ready"


def test_many_consumers_share_a_generator():
    import threading

    generator, taken, lock = count.remote(3000), [], threading.Lock()

    def consume():
        for ref in generator:
            with lock:
                taken.append(ray.get(ref))

    threads = [threading.Thread(target=consume) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(3000))


def test_refs_inside_items_live_on():
    @ray.remote
    def f(borrowed):
        for i in range(3):
            yield [ray.put(np.full(50_000, i)), borrowed[0]]

    lent = ray.put(np.full(60_000, 7))
    items = values(f.remote([lent]))
    del lent
    gc.collect()
    assert [int(ray.get(own)[0]) for own, _ in items] == [0, 1, 2]
    assert all(int(ray.get(other).sum()) == 420_000 for _, other in items)


def test_items_go_to_other_tasks():
    double = ray.remote(lambda x: x * 2)
    assert ray.get([double.remote(ref) for ref in count.remote(5)]) == [0, 2, 4, 6, 8]

    @ray.remote
    def total(refs):
        return sum(ray.get(refs))

    assert ray.get(total.remote(list(count.remote(5)))) == 10


def test_a_task_consumes_a_task(tmp_path):
    """The consumer holds one CPU, as does each level below it. A level that waits gives its CPU
    back."""

    @ray.remote(num_cpus=4)
    def outer(n):
        for ref in ray.remote(num_cpus=4)(lambda m: (yield from range(m))).remote(n):
            yield ray.get(ref) * 10

    assert values(outer.remote(5)) == [0, 10, 20, 30, 40]


# ---- failures


def test_an_item_that_cannot_be_pickled_ends_the_stream():
    @ray.remote(max_retries=0)
    def f():
        import threading

        yield 1
        yield threading.Lock()
        yield 3

    generator = f.remote()
    assert ray.get(next(generator)) == 1
    with pytest.raises(TypeError):
        ray.get(next(generator))
    assert list(generator) == [] and ray.get(generator.completed()) is None


def test_what_a_lost_worker_had_sent_stays(tmp_path):
    @ray.remote(max_retries=0)
    def f():
        yield 1
        yield 2
        wait_for(gate)
        os.kill(os.getpid(), signal.SIGKILL)

    gate = str(tmp_path / "gate")
    generator = f.remote()
    taken = [next(generator), next(generator)]
    touch(gate)
    with pytest.raises(WorkerCrashedError):
        ray.get(next(generator))
    assert list(generator) == [] and ray.get(taken) == [1, 2]
    with pytest.raises(WorkerCrashedError):
        ray.get(generator.completed())


def test_a_large_item_outlives_its_worker():
    @ray.remote(max_retries=0)
    def f():
        yield b"small"
        yield np.full(50_000, 7)
        os._exit(1)

    small, large, end = f.remote()
    assert ray.get(small) == b"small" and int(ray.get(large)[0]) == 7
    with pytest.raises(WorkerCrashedError):
        ray.get(end)


@pytest.mark.parametrize("size", [1, 50_000])
@pytest.mark.parametrize("how", ["dies", "raises"])
def test_a_repeated_attempt_sends_what_is_missing(tmp_path, how, size):
    first, gate = str(tmp_path / "first"), str(tmp_path / "gate")

    @ray.remote(max_retries=2, retry_exceptions=True)
    def f():
        for i in range(3):
            yield np.full(size, i)
        if not os.path.exists(first):
            touch(first)
            wait_for(gate)
            if how == "raises":
                raise ValueError("once")
            os._exit(1)
        yield np.full(size, 3)

    generator = f.remote()
    taken = [next(generator), next(generator)]
    wait_for(first)
    assert ray.wait([generator], timeout=60)[0]
    touch(gate)
    taken += list(generator)
    assert ids(taken) == [2, 3, 4, 5] and [int(ray.get(ref)[0]) for ref in taken] == [0, 1, 2, 3]


def test_an_argument_that_failed():
    bad = ray.remote(max_retries=0)(lambda: 1 / 0).remote()
    generator = count.remote(bad)
    with pytest.raises(ZeroDivisionError):
        ray.get(next(generator))
    assert list(generator) == []


def test_cancel_gives_up_what_was_not_taken(tmp_path):
    reached = str(tmp_path / "reached")

    @ray.remote
    def f():
        yield from range(3)
        touch(reached)
        while True:
            time.sleep(0.01)

    generator = f.remote()
    first = next(generator)
    wait_for(reached)
    ray.cancel(generator)
    with pytest.raises(TaskCancelledError):
        ray.get(next(generator))
    assert list(generator) == [] and ray.get(first) == 0
    with pytest.raises(TaskCancelledError):
        ray.get(generator.completed())


def test_cancel_of_a_queued_and_of_a_finished_one(tmp_path):
    gate = str(tmp_path / "gate")
    blocker = ray.remote(num_cpus=4)(wait_for).remote(gate)
    queued = count.options(num_cpus=4).remote(3)
    ray.cancel(queued)
    with pytest.raises(TaskCancelledError):
        ray.get(next(queued))
    assert list(queued) == []
    touch(gate)
    ray.get(blocker)
    finished = count.remote(3)
    ray.get(finished.completed())
    ray.cancel(finished)
    assert values(finished) == [0, 1, 2]


def test_force_cancel(tmp_path):
    reached = str(tmp_path / "reached")

    @ray.remote
    def f():
        yield 1
        touch(reached)
        threading.Event().wait()

    generator = f.remote()
    wait_for(reached)
    ray.cancel(generator, force=True)
    with pytest.raises(TaskCancelledError) as error:
        ray.get(next(generator))
    assert not isinstance(error.value, RayTaskError)
    assert list(generator) == []


# ---- limits


def test_a_producer_waits_for_its_consumer(tmp_path):
    made = lambda: len(os.listdir(tmp_path))

    @ray.remote(_generator_backpressure_num_objects=3)
    def f():
        for i in range(20):
            touch(str(tmp_path / str(i)))
            yield i

    generator = f.remote()
    until(lambda: made() == 3)
    for i in range(20):
        assert ray.get(next(generator)) == i
        until(lambda: made() == min(20, i + 4))
    assert list(generator) == []


def test_a_waiting_producer_lends_its_cpu_and_hears_of_cancel(tmp_path):
    started = str(tmp_path / "started")

    @ray.remote(num_cpus=4, _generator_backpressure_num_objects=1)
    def f():
        touch(started)
        yield 1
        yield 2

    generator = f.remote()
    wait_for(started)
    assert ray.get(ray.remote(num_cpus=4)(lambda: "ran").remote()) == "ran"
    ray.cancel(generator)
    with pytest.raises(TaskCancelledError):
        ray.get(next(generator))


def test_limits_of_an_actor_count_all_its_streams(tmp_path):
    @ray.remote(max_concurrency=4, _actor_generator_backpressure_num_objects=4)
    class A:
        def items(self, name):
            for i in range(5):
                touch(str(tmp_path / f"{name}{i}"))
                yield i

    a = A.remote()
    streams = [a.items.remote(name) for name in "xy"]
    until(lambda: len(os.listdir(tmp_path)) >= 4)
    # A sixth item would appear within this time.
    time.sleep(0.2)
    assert len(os.listdir(tmp_path)) <= 5
    assert sorted(values(streams[0]) + values(streams[1])) == sorted(2 * list(range(5)))


@pytest.mark.parametrize("limit", [0])
def test_limits_that_make_no_sense(limit):
    with pytest.raises(ValueError):
        count.options(_generator_backpressure_num_objects=limit)
    with pytest.raises(ValueError):
        ray.remote(_actor_generator_backpressure_num_objects=limit)(type("A", (), {}))
    with pytest.raises(ValueError):
        ray.remote(_actor_generator_backpressure_num_objects=-2)(type("A", (), {}))
    # Ray accepts every negative number here, but only -1 for an actor.
    for off in (-1, -7):
        assert values(count.options(_generator_backpressure_num_objects=off).remote(2)) == [0, 1]


# ---- actors


class Items:
    def items(self, n):
        for i in range(n):
            yield i

    def fails(self):
        yield 1
        raise ValueError("midway")

    def dies(self):
        yield 1
        os._exit(1)


@pytest.mark.parametrize("options", [{}, {"max_concurrency": 4}, {"concurrency_groups": {"g": 2}}])
def test_actors_of_threads(options):
    a = (
        ray.remote(Items)
        .options(**{k: v for k, v in options.items() if k != "concurrency_groups"})
        .remote()
        if "concurrency_groups" not in options
        else ray.remote(**options)(Items).remote()
    )
    streams = [a.items.remote(50) for _ in range(6)]
    assert [values(stream) for stream in streams] == [list(range(50))] * 6
    generator = a.fails.remote()
    assert ray.get(next(generator)) == 1
    with pytest.raises(ValueError):
        ray.get(next(generator))
    assert list(generator) == [] and values(a.items.remote(2)) == [0, 1]


@pytest.mark.parametrize("options", [{}, {"max_concurrency": 2}])
def test_an_actors_generator_is_cancelled_between_items(tmp_path, options):
    class Slow:
        def items(self):
            for i in range(1000):
                touch(str(tmp_path / str(i)))
                yield i
                while not ray.get_runtime_context().is_canceled():
                    time.sleep(0.01)

    a = ray.remote(Slow).options(**options).remote()
    generator = a.items.remote()
    assert ray.get(next(generator)) == 0
    ray.cancel(generator)
    for ref in (next(generator), generator.completed()):
        with pytest.raises(TaskCancelledError) as error:
            ray.get(ref)
        assert not isinstance(error.value, RayTaskError)
    assert list(generator) == [] and sorted(os.listdir(tmp_path)) in (["0"], ["0", "1"]), (
        "it ends where it would give its next item"
    )


def test_an_actor_that_dies():
    a = ray.remote(Items).remote()
    generator = a.dies.remote()
    assert ray.get(next(generator)) == 1
    with pytest.raises(ray.exceptions.ActorDiedError):
        ray.get(next(generator))
    assert list(generator) == []


class Async:
    async def items(self, n):
        for i in range(n):
            await asyncio.sleep(0)
            yield i

    async def busy(self, n):
        for i in range(n):
            yield i

    def plain(self, n):
        yield from range(n)

    async def sleeps(self):
        yield 1
        await asyncio.sleep(600)

    async def fails(self):
        yield 1
        raise ValueError("midway")

    async def submits(self, n):
        for i in range(n):
            yield await ray.remote(lambda x: x * 2).remote(i)


def test_async_actors():
    a = ray.remote(Async).remote()
    streams = [a.items.remote(30), a.busy.remote(30), a.plain.remote(30)]
    assert [values(stream) for stream in streams] == [list(range(30))] * 3
    assert values(a.submits.remote(3)) == [0, 2, 4]
    generator = a.fails.remote()
    assert ray.get(next(generator)) == 1
    with pytest.raises(ValueError):
        ray.get(next(generator))
    assert list(generator) == []
    generator = a.sleeps.remote()
    assert ray.get(next(generator)) == 1
    ray.cancel(generator)
    with pytest.raises(TaskCancelledError):
        ray.get(next(generator))
    assert list(generator) == [] and values(a.items.remote(1)) == [0]


def test_async_for_inside_an_async_actor():
    @ray.remote
    class Consumer:
        async def total(self, n):
            return sum([await ref async for ref in count.remote(n)])

    assert ray.get(Consumer.remote().total.remote(100)) == 4950


# ---- dynamic


def test_dynamic_items_outlive_their_generator():
    @ray.remote(num_returns="dynamic")
    def f(n):
        for i in range(n):
            yield np.full(50_000, i)

    ref = f.remote(3)
    generator = ray.get(ref)
    assert len(generator) == 3 and type(generator).__name__ == "DynamicObjectRefGenerator"
    refs = list(generator)
    assert len(generator) == 0 and len(ray.get(ref)) == 3
    del ref, generator
    gc.collect()
    assert [int(ray.get(item)[0]) for item in refs] == [0, 1, 2]
    assert len(ray.get(f.remote(500))) == 500
    assert len(ray.get(f.options(_generator_backpressure_num_objects=1).remote(5))) == 5


def test_dynamic_of_an_async_generator_is_an_error():
    a = ray.remote(Async).remote()
    with pytest.raises(ValueError, match="must return a generator"):
        ray.get(a.busy.options(num_returns="dynamic").remote(2))
    assert [ray.get(ref) for ref in ray.get(a.plain.options(num_returns="dynamic").remote(2))] == [
        0,
        1,
    ]


# ---- what is refused


def test_strings_are_for_generators():
    plain = lambda: 1
    for returns in ("streaming", "dynamic"):
        with pytest.raises(ValueError, match="generator"):
            ray.remote(num_returns=returns)(plain)
        with pytest.raises(ValueError, match="generator"):
            ray.remote(plain).options(num_returns=returns)


def test_a_generator_stays_where_it_is():
    generator = count.remote(1)
    assert ray.get(generator) is generator
    for use in (
        lambda: ray.get([generator]),
        lambda: pickle.dumps(generator),
        lambda: ray.put(generator),
        lambda: count.remote(generator),
    ):
        with pytest.raises(TypeError):
            use()
    for name in ("send", "throw", "asend", "athrow"):
        with pytest.raises(NotImplementedError):
            getattr(generator, name)(1)
    for name in ("close", "aclose"):
        with pytest.raises(NotImplementedError):
            getattr(generator, name)()


def test_the_timeline_shows_the_task():
    values(count.options(name="counted_stream").remote(3))
    until(
        lambda: any(
            "counted_stream" in event.get("name", "")
            or "counted_stream" in str(event.get("args", ""))
            for event in ray.timeline()
        )
    )
