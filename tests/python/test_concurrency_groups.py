"""Concurrency groups: a limit and a queue of calls for each, of asyncio and threaded actors."""

import asyncio
import threading

import pytest

import ray
from ray.exceptions import ActorDiedError, GetTimeoutError

pytestmark = pytest.mark.usefixtures("cluster")


class Async:
    """An asyncio actor whose groups have loops of their own, so that they share no
    asyncio.Event."""

    def __init__(self):
        self.opened = False
        self.running = self.most = 0

    @ray.method(concurrency_group="io")
    async def block(self):
        self.running += 1
        self.most = max(self.most, self.running)
        while not self.opened:
            await asyncio.sleep(0.005)
        self.running -= 1
        return "unblocked"

    async def peek(self):
        return self.running, self.most

    async def open(self):
        self.opened = True


class Threaded:
    def __init__(self):
        self.opened = threading.Event()
        self.lock = threading.Lock()
        self.running = self.most = 0

    @ray.method(concurrency_group="io")
    def block(self):
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
        self.opened.wait(60)
        with self.lock:
            self.running -= 1
        return "unblocked"

    def peek(self):
        return self.running, self.most

    def open(self):
        self.opened.set()


KINDS = pytest.mark.parametrize("kind", [Async, Threaded])


def wait_for_running(actor, count):
    while ray.get(actor.peek.remote(), timeout=60)[0] < count:
        pass


@KINDS
def test_a_full_group_holds_only_its_own_calls(kind):
    actor = ray.remote(concurrency_groups={"io": 2, "compute": 1})(kind).remote()
    blocked = [actor.block.remote() for _ in range(5)]
    wait_for_running(actor, 2)
    more = actor.peek.options(concurrency_group="io").remote()
    assert ray.get(actor.peek.options(concurrency_group="compute").remote(), timeout=60) == (2, 2)
    with pytest.raises(GetTimeoutError):
        ray.get(more, timeout=0.2)
    ray.get(actor.open.remote(), timeout=60)
    assert ray.get(blocked, timeout=60) == ["unblocked"] * 5
    assert ray.get(more, timeout=60)[1] == 2


@KINDS
def test_a_call_may_name_another_group(kind):
    actor = ray.remote(
        concurrency_groups=[
            {"name": "io", "max_concurrency": 1},
            {"name": "other", "max_concurrency": 1},
        ]
    )(kind).remote()
    blocked = [actor.block.remote(), actor.block.options(concurrency_group="other").remote()]
    wait_for_running(actor, 2)
    ray.get(actor.open.remote(), timeout=60)
    assert ray.get(blocked, timeout=60) == ["unblocked"] * 2


@KINDS
def test_handles_carry_the_groups(kind):
    name = f"grouped {kind.__name__}"
    actor = ray.remote(concurrency_groups={"io": 1})(kind).options(name=name).remote()

    @ray.remote
    def work(handle):
        actor = ray.get_actor(name)
        blocked = actor.block.remote()
        ray.get(handle.open.remote())
        return ray.get(blocked)

    assert ray.get(work.remote(actor), timeout=60) == "unblocked"


@KINDS
def test_a_group_that_does_not_exist_ends_the_actor(kind):
    actor = ray.remote(concurrency_groups={"io": 1})(kind).remote()
    assert ray.get(actor.peek.remote(), timeout=60) == (0, 0)
    with pytest.raises(ActorDiedError, match="no.such.group"):
        ray.get(actor.peek.options(concurrency_group="no such group").remote(), timeout=60)


def test_an_actor_without_groups_has_none_to_name():
    class Plain:
        def m(self):
            return 1

    actor = ray.remote(Plain).remote()
    with pytest.raises(ActorDiedError, match="elsewhere"):
        ray.get(actor.m.options(concurrency_group="elsewhere").remote(), timeout=60)


def test_wrong_groups_are_refused():
    class Plain:
        pass

    for groups, error in (
        ("io", TypeError),
        ({"io": 0}, ValueError),
        ({"io": "2"}, TypeError),
        ({"": 1}, ValueError),
        ({1: 1}, ValueError),
        ([1], ValueError),
    ):
        with pytest.raises(error):
            ray.remote(concurrency_groups=groups)(Plain)
    with pytest.raises(ValueError):
        ray.remote(Plain).options(concurrency_groups={"io": 1})

    # An undeclared group is found only when the method is called.
    class Undeclared:
        @ray.method(concurrency_group="io")
        def m(self):
            return 1

    ray.remote(concurrency_groups={"other": 1})(Undeclared)
