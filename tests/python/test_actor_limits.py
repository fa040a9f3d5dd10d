"""Limits for unanswered calls of callers of actors."""

import asyncio
import subprocess
import threading

import pytest

import ray
from ray.exceptions import ActorDiedError
from ray.util.state import list_tasks
from waiting import PATIENCE_S, answer_of, until


@ray.remote(num_cpus=0, concurrency_groups={"work": 1, "health": 1})
class Doors:
    """Calls of the group `work` wait until the actor is told to open."""

    def __init__(self):
        self.opened = threading.Event()

    @ray.method(concurrency_group="work")
    def block(self, n):
        self.opened.wait(PATIENCE_S)
        return n

    @ray.method(concurrency_group="health")
    def check(self):
        return "healthy"

    @ray.method(concurrency_group="health")
    def open(self):
        self.opened.set()


@ray.remote(num_cpus=0)
class AsyncDoors:
    def __init__(self):
        self.opened = asyncio.Event()

    async def block(self, n):
        await asyncio.wait_for(self.opened.wait(), PATIENCE_S)
        return n

    async def open(self):
        self.opened.set()


@pytest.fixture
def small_window(no_cluster, monkeypatch):
    """Yields a cluster whose callers send at most this many unanswered calls to a concurrency
    group."""
    window = 20
    monkeypatch.setenv("RAY_actor_max_in_flight", str(window))
    ray.init(num_cpus=2)
    return window


def test_a_full_group_does_not_hold_back_the_others(small_window, capfd):
    actor = Doors.remote()
    refs = [actor.block.remote(n) for n in range(5 * small_window)]
    assert ray.get(actor.check.remote(), timeout=PATIENCE_S) == "healthy"
    # The calls that wait at the caller are listed, and the driver's log says why they do.
    waiting = [
        task
        for task in answer_of(lambda: list_tasks(limit=10_000))
        if task["state"] == "PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY" and not task["worker_id"]
    ]
    assert len(waiting) == 4 * small_window
    words = ["rayctl", "debug", "--address", ray.get_runtime_context().gcs_address]
    debug = answer_of(
        lambda: subprocess.run(words, capture_output=True, text=True, check=True).stdout
    )
    assert f"{4 * small_window}x Doors.block" in debug
    assert f"(actor_max_in_flight, now {small_window})" in debug
    log = []

    def told():
        log.append("".join(capfd.readouterr()))
        return "actor_max_in_flight" in "".join(log)

    until(told)
    ray.get(actor.open.remote(), timeout=PATIENCE_S)
    assert ray.get(refs, timeout=PATIENCE_S) == list(range(len(refs)))
    log.append("".join(capfd.readouterr()))
    text = "".join(log)
    assert text.count("actor_max_in_flight (RAY_actor_max_in_flight") == 1
    assert "concurrency group 'work'" in text


def test_a_window_holds_all_that_may_run_at_once(small_window):
    actor = AsyncDoors.options(max_concurrency=10 * small_window).remote()
    refs = [actor.block.remote(n) for n in range(5 * small_window)]
    ray.get(actor.open.remote(), timeout=PATIENCE_S)
    assert ray.get(refs, timeout=PATIENCE_S) == list(range(len(refs)))


@ray.remote(num_cpus=0, concurrency_groups={"work": 2})
class AsyncGroups:
    def __init__(self):
        self.opened = threading.Event()

    @ray.method(concurrency_group="work")
    async def block(self, n):
        await asyncio.to_thread(self.opened.wait)
        return n

    async def open(self):
        self.opened.set()


def test_calls_beyond_an_actors_concurrency_are_in_status_and_list(no_cluster):
    ray.init(num_cpus=2)
    actor = AsyncGroups.remote()
    refs = [actor.block.remote(n) for n in range(7)]
    address = ray.get_runtime_context().gcs_address

    def status():
        words = ["rayctl", "status", "--address", address]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    until(status, lambda text: "max_concurrency or the group allows:\n 5 calls\n" in text)
    tasks = answer_of(list_tasks)
    states = [task["state"] for task in tasks if task["name"] == "AsyncGroups.block"]
    assert sorted(states) == ["PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY"] * 5 + ["RUNNING"] * 2
    ray.get(actor.open.remote(), timeout=PATIENCE_S)
    assert ray.get(refs, timeout=PATIENCE_S) == list(range(7))
    until(status, lambda text: "Waiting for actors" not in text)


def test_calls_fail_beyond_the_number_of_actors_that_a_process_may_follow(no_cluster, monkeypatch):
    monkeypatch.setenv("RAY_subscriptions_per_connection", "2")
    ray.init(num_cpus=2)
    first = Doors.remote()
    assert ray.get(first.check.remote(), timeout=PATIENCE_S) == "healthy"
    second = Doors.remote()
    assert ray.get(second.check.remote(), timeout=PATIENCE_S) == "healthy"
    with pytest.raises(ActorDiedError, match="subscriptions_per_connection"):
        ray.get(Doors.remote().check.remote(), timeout=PATIENCE_S)
    ray.kill(first)
    with pytest.raises(ActorDiedError, match="ray.kill"):
        ray.get(first.check.remote(), timeout=PATIENCE_S)
    assert ray.get(Doors.remote().check.remote(), timeout=PATIENCE_S) == "healthy"
