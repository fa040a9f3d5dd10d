"""The names of workers that ps shows."""

import os
import pathlib
import threading

import pytest

import ray

pytestmark = pytest.mark.usefixtures("cluster")


def title(pid="self"):
    with open(f"/proc/{pid}/cmdline") as file:
        return file.read().rstrip("\0")


@ray.remote
def a_task():
    return os.getpid(), title()


@ray.remote
class Actor:
    def __init__(self):
        self.at_start = title()

    def started(self):
        return self.at_start

    def method(self):
        return os.getpid(), title()


@ray.remote
class Async:
    async def method(self):
        return title()


def test_a_task_is_named_while_it_runs():
    pid, while_running = ray.get(a_task.remote())
    assert while_running == "ray::a_task"
    assert title(pid) == "ray::IDLE"
    assert ray.get(a_task.options(name="another").remote())[1] == "ray::another"


def test_the_title_of_an_actor_shows_its_method():
    actor = Actor.remote()
    assert ray.get(actor.started.remote()) == "ray::Actor.__init__"
    pid, while_running = ray.get(actor.method.remote())
    assert while_running == "ray::Actor.method"
    assert title(pid) == "ray::Actor"


def test_actors_with_several_calls_at_a_time():
    assert ray.get(Async.remote().method.remote()) == "ray::Async"
    assert ray.get(Actor.options(max_concurrency=2).remote().method.remote())[1] == "ray::Actor"


class Threaded:
    """The kernel names the thread that the constructor starts, and the one that calls methods."""

    def __init__(self):
        self.seen = []
        thread = threading.Thread(
            target=lambda: self.seen.append(
                pathlib.Path("/proc/thread-self/comm").read_text().strip()
            )
        )
        thread.start()
        thread.join()

    def names(self):
        return [*self.seen, pathlib.Path("/proc/self/comm").read_text().strip()]


@pytest.mark.parametrize(
    "name, seen", (("Threaded", "ray::Threaded"), ("A" + "é" * 20, "ray::A" + "é" * 4))
)
def test_threads_of_an_actor_have_its_name(name, seen):
    assert ray.get(ray.remote(type(name, (Threaded,), {})).remote().names.remote()) == [seen] * 2


def test_a_long_name_is_cut():
    name = "long_" * 1000
    scope = {}
    exec(
        f"def {name}(): return open('/proc/self/cmdline').read(), dict(__import__('os').environ)",
        scope,
    )
    text, environ = ray.get(ray.remote(scope[name]).remote())
    assert text.rstrip("\0").startswith("ray::long_") and len(text) < 5000
    assert environ["RAY_JOB_ID"] == ray.get_runtime_context().get_job_id()
