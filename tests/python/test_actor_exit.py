"""Actors that end themselves: calls that had started are answered, and no other calls are."""

import asyncio
import atexit
import os
import threading

import pytest

import ray
from ray.exceptions import ActorDiedError
from waiting import touch, until, wait_for

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


KINDS = {
    "plain": ray.remote(Plain),
    "threaded": ray.remote(max_concurrency=3)(Threaded),
    "async": ray.remote(Async),
}


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


@pytest.mark.parametrize(
    "end, why", [("leave", "exit_actor"), ("__ray_terminate__", "__ray_terminate__")]
)
def test_every_caller_hears_who_left_and_why(end, why):
    actor = KINDS["plain"].options(name=f"leaver {end}").remote()
    pid = ray.get(actor.__ray_call__.remote(lambda self: __import__("os").getpid()))
    for ref in (getattr(actor, end).remote(), actor.m.remote()):
        with pytest.raises(ActorDiedError) as error:
            ray.get(ref, timeout=60)
        text = str(error.value)
        for part in (
            "class_name: Plain",
            f"actor_id: {actor._actor_id.hex()}",
            f"pid: {pid}",
            f"name: leaver {end}",
            "namespace: ",
            "ip: ",
            why,
        ):
            assert part in text
        assert error.value.actor_id == actor._actor_id.hex()


def test_a_failed_argument_of_a_call_says_whose_it_was():
    @ray.remote
    def source():
        raise KeyError("the source")

    class Taker:
        def __init__(self, given=None):
            pass

        def take(self, given):
            return given

    taker = ray.remote(Taker)
    actor = taker.remote()
    for ref, names in (
        (actor.take.remote(source.remote()), ("ray::Taker.take()", "ray::source()")),
        (taker.remote(source.remote()).take.remote(1), ("ray::Taker.__init__()", "ray::source()")),
    ):
        with pytest.raises((KeyError, ActorDiedError)) as error:
            ray.get(ref, timeout=60)
        text = str(error.value)
        at = [text.index(name) for name in names]
        assert (
            at == sorted(at)
            and "At least one of the input arguments for this task could not be computed:" in text
            and "the source" in text
        )
    assert ray.get(actor.take.remote(2), timeout=60) == 2


class LeavesBeside:
    """exit_actor() is called beside the actor's calls: in a thread or task that a call or the
    constructor has started."""

    def __init__(self, notes, starter):
        self.notes, self.go = notes, asyncio.Event()
        atexit.register(self.note, "atexit")
        if starter == "constructor":
            self.start_task()

    def note(self, what):
        with open(self.notes, "a") as file:
            file.write(what)

    def start_task(self):
        self.task = asyncio.get_event_loop().create_task(self.wait_and_leave())

    async def wait_and_leave(self):
        await self.go.wait()
        ray.actor.exit_actor()

    async def start(self, starter):
        if starter == "method":
            self.start_task()
        elif starter == "thread":
            loop = asyncio.get_running_loop()
            wait = asyncio.run_coroutine_threadsafe(self.go.wait(), loop).result
            threading.Thread(target=lambda: (wait(), ray.actor.exit_actor())).start()
        return os.getpid()

    async def let_go(self):
        self.go.set()


@pytest.mark.parametrize("starter", ["constructor", "method", "thread"])
def test_an_actor_ends_by_what_runs_beside_its_calls(tmp_path, starter):
    notes = tmp_path / "notes"
    actor = ray.remote(max_restarts=3)(LeavesBeside).remote(str(notes), starter)
    process = ray.get(actor.start.remote(starter))
    actor.let_go.remote()
    until(lambda: not os.path.exists(f"/proc/{process}"))
    with pytest.raises(ActorDiedError, match="exit_actor"):
        ray.get(actor.start.remote(starter), timeout=60)
    assert notes.read_text() == "atexit"


def test_threads_that_leave_are_not_reported_as_failed(tmp_path):
    notes = tmp_path / "notes"

    @ray.remote
    class LeavesInThreads:
        def __init__(self):
            threading.excepthook = self.note

        def note(self, report):
            with open(notes, "a") as file:
                file.write(report.exc_type.__name__)

        def leave(self):
            for thread in (
                threading.Thread(target=ray.actor.exit_actor),
                threading.Timer(0, ray.actor.exit_actor),
                threading.Thread(target=lambda: 1 / 0),
            ):
                thread.start()
                thread.join()
            return "had started"

        def m(self):
            return 1

    actor = LeavesInThreads.remote()
    assert ray.get(actor.leave.remote(), timeout=60) == "had started"
    with pytest.raises(ActorDiedError, match="exit_actor"):
        ray.get(actor.m.remote(), timeout=60)
    assert notes.read_text() == "ZeroDivisionError"


class LeavesAtOnce:
    def __init__(self, notes):
        atexit.register(lambda: notes.write_text("atexit"))
        ray.actor.exit_actor()

    def m(self):
        return 1


class LeavesAtOnceAsync(LeavesAtOnce):
    async def m(self):
        return 1


@pytest.mark.parametrize("cls", [LeavesAtOnce, LeavesAtOnceAsync])
def test_exit_functions_run_when_the_constructor_leaves(tmp_path, cls):
    notes = tmp_path / "notes"
    with pytest.raises(ActorDiedError, match="exit_actor"):
        ray.get(ray.remote(cls).remote(notes).m.remote(), timeout=60)
    assert notes.read_text() == "atexit"


# ---- what is owed to an actor that leaves by itself


class Owed:
    def __init__(self, path, name):
        self.path, self.name = path, name
        atexit.register(self.note_in, path, "atexit")

    @staticmethod
    def note_in(path, what):
        with open(path, "a") as file:
            file.write(what + "\n")

    def leave(self):
        ray.actor.exit_actor()

    def m(self):
        return 1

    def __ray_shutdown__(self):
        self.note_in(self.path, "shutdown")

    def __del__(self):
        self.note_in(self.path, "del")


class OwedRaises(Owed):
    def __ray_shutdown__(self):
        self.note_in(self.path, "shutdown")
        raise ValueError("in the hook")


class OwedAsync(Owed):
    async def m(self):
        return 1

    async def __ray_shutdown__(self):
        await asyncio.sleep(0)
        self.note_in(self.path, "shutdown")


@pytest.mark.parametrize(
    "cls, end",
    [
        (Owed, "scope"),
        (Owed, "leave"),
        (Owed, "terminate"),
        (OwedRaises, "scope"),
        (OwedAsync, "scope"),
    ],
)
def test_hooks_run_in_order(tmp_path, cls, end):
    path = tmp_path / "notes"
    actor = ray.remote(cls).remote(str(path), end)
    assert ray.get([actor.m.remote(), actor.m.remote()]) == [1, 1]
    if end == "leave":
        actor.leave.remote()
    elif end == "terminate":
        actor.__ray_terminate__.remote()
    del actor
    assert until(
        lambda: path.read_text().split() if path.exists() else [], lambda said: "atexit" in said
    ) == ["shutdown", "del", "atexit"]


def test_a_killed_actor_gets_no_hooks(tmp_path):
    path = tmp_path / "notes"
    actor = ray.remote(Owed).remote(str(path), "kill")
    assert ray.get(actor.m.remote()) == 1
    ray.kill(actor)
    with pytest.raises(ActorDiedError):
        ray.get(actor.m.remote())
    assert not path.exists()


@ray.remote(num_cpus=0)
class Named:
    def __init__(self, i):
        self.i = i

    def number(self):
        return self.i


def test_a_name_is_free_when_its_last_handle_goes():
    """The name is free at once, while the actor takes its time to end."""
    for options in ({}, {"get_if_exists": True}):
        for i in range(10):
            actor = Named.options(name="again", **options).remote(i)
            assert ray.get(actor.number.remote()) == i
            del actor


class LeavesInThreadOfCall:
    def m(self, go):
        if not go:
            ray.actor.exit_actor()
        touch(go + ".begun")
        wait_for(go)
        return "ran"


class LeavesInCoroutine:
    async def m(self, go):
        if not go:
            ray.actor.exit_actor()
        touch(go + ".begun")
        await asyncio.to_thread(wait_for, go)
        return "ran"


@pytest.mark.parametrize("cls", [LeavesInThreadOfCall, LeavesInCoroutine])
def test_calls_that_wait_for_an_actor_that_leaves_fail_at_once(tmp_path, cls):
    """Calls that are running may take as long as they like, and get their results."""
    go = str(tmp_path / "go")
    options = {"max_concurrency": 3, "max_restarts": 2, "max_task_retries": 2}
    actor = ray.remote(**options)(cls).remote()
    runs = actor.m.remote(go)
    # A call that no thread has begun yet fails like those that wait.
    wait_for(go + ".begun")
    for _ in range(4):
        with pytest.raises(ActorDiedError, match="exit_actor"):
            ray.get(actor.m.remote(None), timeout=60)
    touch(go)
    assert ray.get(runs, timeout=60) == "ran"


def test_an_exit_that_user_code_catches_ends_the_actor_all_the_same():
    @ray.remote(max_restarts=2)
    class Catches:
        def leave(self):
            try:
                ray.actor.exit_actor()
            except BaseException:
                return "caught"

    actor = Catches.remote()
    assert ray.get(actor.leave.remote(), timeout=60) == "caught"
    with pytest.raises(ActorDiedError, match="exit_actor"):
        ray.get(actor.leave.remote(), timeout=60)
