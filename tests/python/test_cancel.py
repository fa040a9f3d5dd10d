"""ray.cancel ends queued, sent and running tasks, actors' calls and children, and nothing else."""

import asyncio
import os
import signal
import sys
import time

import pytest

import ray
from ray.exceptions import RayTaskError, TaskCancelledError
from waiting import touch, until, wait_for


def spin():
    """Runs until it is interrupted."""
    while True:
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def own_cluster(cluster):
    yield


def test_queued_task_never_starts(tmp_path):
    gate, ran = str(tmp_path / "gate"), str(tmp_path / "ran")
    blocked = ray.remote(num_cpus=4)(wait_for).remote(gate)
    queued = [ray.remote(num_cpus=4)(touch).remote(ran) for _ in range(20)]
    for ref in queued:
        assert ray.cancel(ref) is None
    for ref in queued:
        with pytest.raises(TaskCancelledError) as error:
            ray.get(ref)
        assert not isinstance(error.value, RayTaskError)
        assert ref.task_id().hex() in str(error.value)
    touch(gate)
    ray.get(blocked)
    assert not os.path.exists(ran)


def test_an_interrupt_that_a_system_call_missed_is_repeated(tmp_path):
    """A signal that comes just before a system call is handled only after it."""
    ready = str(tmp_path / "ready")

    @ray.remote
    def misses_the_first():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        touch(ready)
        signal.sigwait({signal.SIGINT})
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        while True:
            signal.pause()

    ref = misses_the_first.remote()
    wait_for(ready)
    ray.cancel(ref)
    with pytest.raises(TaskCancelledError):
        ray.get(ref, timeout=60)


def test_an_import_under_way_is_completed(tmp_path):
    """Otherwise the next task of the process would find a module that is half there."""
    started, gate, runs = (tmp_path / name for name in ("started", "gate", "runs"))
    (tmp_path / "slow_to_import.py").write_text(
        f"import os, waiting\n"
        f"open({str(runs)!r}, 'a').write('.')\n"
        f"open({str(started)!r}, 'w').close()\n"
        f"waiting.wait_for({str(gate)!r})\n"
        f"VALUE = os.getpid()\n"
    )

    @ray.remote(num_cpus=4)
    def first():
        sys.path.insert(0, str(tmp_path))
        import slow_to_import  # noqa: F401

        spin()

    @ray.remote(num_cpus=4)
    def second():
        import slow_to_import

        return slow_to_import.VALUE == os.getpid()

    cancelled = first.remote()
    until(started.exists)
    ray.cancel(cancelled)
    ready, _ = ray.wait([cancelled], timeout=0.2)
    assert not ready
    touch(str(gate))
    with pytest.raises(TaskCancelledError):
        ray.get(cancelled)
    assert ray.get(second.remote()) and runs.read_text() == "."


def test_waiting_for_an_argument(tmp_path):
    gate = str(tmp_path / "gate")
    first = ray.remote(wait_for).remote(gate)
    second = ray.remote(lambda x: x).remote(first)
    ray.cancel(second)
    with pytest.raises(TaskCancelledError):
        ray.get(second)
    touch(gate)
    assert ray.get(first) is None


def test_sent_behind_another_task(tmp_path):
    """Short tasks are sent to a worker before it is free; one of them comes back unstarted."""
    gate, started, ran = (str(tmp_path / name) for name in ("gate", "started", "ran"))

    @ray.remote(num_cpus=4)
    def maybe(path, block):
        if block:
            touch(started)
            wait_for(gate)
        elif path:
            touch(path)

    # Once the duration of a task is known, many are sent ahead.
    ray.get([maybe.remote("", False) for _ in range(200)])
    blocker = maybe.remote("", True)
    behind = [maybe.remote(ran, False) for _ in range(5)]
    wait_for(started)
    for ref in behind:
        ray.cancel(ref)
    for ref in behind:
        with pytest.raises(TaskCancelledError):
            ray.get(ref)
    touch(gate)
    ray.get(blocker)
    assert not os.path.exists(ran)


def test_running_task_sees_keyboard_interrupt_and_is_not_retried(tmp_path):
    @ray.remote(max_retries=3, retry_exceptions=True)
    def run():
        try:
            touch(str(tmp_path / "started"))
            spin()
        except BaseException as error:
            touch(str(tmp_path / type(error).__name__))
            raise

    ref = run.remote()
    wait_for(str(tmp_path / "started"))
    ray.cancel(ref)
    with pytest.raises(RayTaskError) as error:
        ray.get(ref)
    assert isinstance(error.value, TaskCancelledError)
    assert (
        type(error.value.cause) is TaskCancelledError and error.value.cause.task_id == ref.task_id()
    )
    assert sorted(os.listdir(tmp_path)) == ["KeyboardInterrupt", "started"]


def test_interrupted_while_it_waits_in_get(tmp_path):
    @ray.remote
    def child():
        wait_for(str(tmp_path / "gate"))

    @ray.remote
    def parent():
        touch(str(tmp_path / "started"))
        return ray.get(child.remote())

    ref = parent.remote()
    wait_for(str(tmp_path / "started"))
    ray.cancel(ref, recursive=False)
    with pytest.raises(TaskCancelledError):
        ray.get(ref)
    touch(str(tmp_path / "gate"))


def test_swallowed_interrupt_and_the_worker_afterwards(tmp_path):
    @ray.remote
    def run():
        try:
            touch(str(tmp_path / "started"))
            spin()
        except KeyboardInterrupt:
            return "survived"

    ref = run.remote()
    wait_for(str(tmp_path / "started"))
    ray.cancel(ref)
    assert ray.get(ref) == "survived"
    assert ray.get([ray.remote(lambda: 1).remote() for _ in range(20)]) == [1] * 20


def test_force_ends_the_worker(tmp_path):
    @ray.remote(max_retries=-1)
    def run():
        touch(str(tmp_path / f"pid-{os.getpid()}"))
        while True:
            try:
                time.sleep(100)
            except BaseException:
                pass

    ref = run.remote()
    name = until(lambda: os.listdir(tmp_path))[0]
    ray.cancel(ref, force=True)
    with pytest.raises(TaskCancelledError) as error:
        ray.get(ref)
    assert not isinstance(error.value, RayTaskError)
    pid = int(name.removeprefix("pid-"))
    until(lambda: not os.path.exists(f"/proc/{pid}"))
    assert ray.get(ray.remote(lambda: 1).remote()) == 1


def test_force_ends_a_stopped_worker(tmp_path):
    @ray.remote(max_retries=-1)
    def stop():
        touch(str(tmp_path / f"pid-{os.getpid()}"))
        os.kill(os.getpid(), signal.SIGSTOP)

    ref = stop.remote()
    pid = int(until(lambda: os.listdir(tmp_path))[0][4:])
    until(
        lambda: open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0],
        lambda state: state == "T",
    )
    ray.cancel(ref, force=True)
    with pytest.raises(TaskCancelledError):
        ray.get(ref)
    until(lambda: not os.path.exists(f"/proc/{pid}"))


def test_finished_task_is_left_alone():
    ref = ray.remote(lambda: 1).remote()
    assert ray.get(ref) == 1
    assert ray.cancel(ref) is None and ray.cancel(ref, force=True) is None
    assert ray.cancel(ray.put(1)) is None
    assert ray.get(ref) == 1


@pytest.mark.parametrize("recursive", [True, False])
def test_children_are_cancelled_only_if_recursive(tmp_path, recursive):
    @ray.remote
    def child():
        try:
            touch(str(tmp_path / "started"))
            wait_for(tmp_path / "gate")
        except KeyboardInterrupt:
            touch(str(tmp_path / "cancelled"))
            raise
        touch(str(tmp_path / "finished"))

    @ray.remote
    def parent():
        return ray.get(child.remote())

    ref = parent.remote()
    wait_for(str(tmp_path / "started"))
    ray.cancel(ref, recursive=recursive)
    with pytest.raises(TaskCancelledError):
        ray.get(ref)
    if not recursive:
        touch(str(tmp_path / "gate"))
    wait_for(str(tmp_path / ("cancelled" if recursive else "finished")))


def test_a_borrower_cancels_a_task(tmp_path):
    @ray.remote
    def run():
        touch(str(tmp_path / "started"))
        spin()

    ref = run.remote()
    wait_for(str(tmp_path / "started"))
    ray.get(ray.remote(lambda refs: ray.cancel(refs[0])).remote([ref]))
    with pytest.raises(TaskCancelledError):
        ray.get(ref)


def test_a_coroutine_that_is_cancelled_between_two_waits_hears_of_it_before_its_child(tmp_path):
    @ray.remote
    def child():
        touch(str(tmp_path / "child"))
        spin()

    @ray.remote
    class A:
        async def wait(self):
            ref = child.remote()
            # The loop learns nothing until the child has ended, as on a machine that is busy.
            ray.wait([ref])
            try:
                await ref
            except BaseException as error:
                touch(str(tmp_path / type(error).__name__))
                raise

    ref = A.remote().wait.remote()
    wait_for(str(tmp_path / "child"))
    ray.cancel(ref)
    with pytest.raises(TaskCancelledError):
        ray.get(ref)
    wait_for(str(tmp_path / "CancelledError"))


def test_coroutine_of_an_async_actor(tmp_path):
    @ray.remote
    def child():
        try:
            touch(str(tmp_path / "child"))
            spin()
        except KeyboardInterrupt:
            touch(str(tmp_path / "child cancelled"))
            raise

    @ray.remote
    class A:
        async def wait(self):
            try:
                await child.remote()
            except asyncio.CancelledError:
                touch(str(tmp_path / "cancelled"))
                raise

        async def fine(self):
            return 1

    a = A.remote()
    ref = a.wait.remote()
    wait_for(str(tmp_path / "child"))
    ray.cancel(ref)
    with pytest.raises(RayTaskError) as error:
        ray.get(ref)
    assert isinstance(error.value, TaskCancelledError)
    assert ray.get(a.fine.remote()) == 1
    wait_for(str(tmp_path / "cancelled"), str(tmp_path / "child cancelled"))


def test_a_call_is_sent_though_its_caller_neither_waits_nor_calls_again(tmp_path):
    @ray.remote
    class A:
        async def wait(self):
            touch(str(tmp_path / "first"))
            await asyncio.Event().wait()

        async def second(self):
            touch(str(tmp_path / "second"))

    a = A.remote()
    first = a.wait.remote()
    wait_for(str(tmp_path / "first"))
    second = a.second.remote()
    until(lambda: os.path.exists(tmp_path / "second"))
    ray.get(second)
    ray.cancel(first)


@pytest.mark.parametrize("threads", [1, 3])
def test_plain_actor_is_not_interrupted(tmp_path, threads):
    @ray.remote(max_concurrency=threads)
    class A:
        def run(self):
            touch(str(tmp_path / "started"))
            while not ray.get_runtime_context().is_canceled():
                time.sleep(0.01)
            touch(str(tmp_path / "noticed"))
            return "noticed"

        def fine(self):
            return ray.get_runtime_context().is_canceled()

    a = A.remote()
    ref = a.run.remote()
    wait_for(str(tmp_path / "started"))
    with pytest.raises(ValueError):
        ray.cancel(ref, force=True)
    ray.cancel(ref)
    with pytest.raises(TaskCancelledError) as error:
        ray.get(ref)
    assert not isinstance(error.value, RayTaskError)
    assert ray.get(a.fine.remote()) is False
    assert os.path.exists(tmp_path / "noticed")


def test_queued_call_of_an_actor(tmp_path):
    @ray.remote
    class A:
        calls = 0

        def block(self):
            wait_for(str(tmp_path / "gate"))

        def up(self):
            self.calls += 1
            return self.calls

    a = A.remote()
    assert ray.get(a.up.remote()) == 1
    blocked, queued = a.block.remote(), a.up.remote()
    ray.cancel(queued)
    with pytest.raises(TaskCancelledError):
        ray.get(queued)
    touch(str(tmp_path / "gate"))
    ray.get(blocked)
    assert ray.get(a.up.remote()) == 2


@pytest.mark.parametrize("is_async", [True, False])
def test_call_that_waits_for_its_turn_is_answered_at_once(tmp_path, is_async):
    gate = str(tmp_path / "gate")

    @ray.remote(max_concurrency=2, concurrency_groups={"other": 1})
    class Threaded:
        @ray.method(concurrency_group="other")
        def other(self):
            pass

        def block(self):
            wait_for(gate)

        def mark(self):
            touch(str(tmp_path / "ran"))

    @ray.remote(max_concurrency=2, concurrency_groups={"other": 1})
    class Async:
        @ray.method(concurrency_group="other")
        async def other(self):
            pass

        async def block(self):
            while not os.path.exists(gate):
                await asyncio.sleep(0.01)

        async def mark(self):
            touch(str(tmp_path / "ran"))

    a = (Async if is_async else Threaded).remote()
    blocked = [a.block.remote(), a.block.remote()]
    queued = a.mark.remote()
    # After this answer, everything that was sent before has arrived.
    ray.get(a.other.remote())
    ray.cancel(queued)
    with pytest.raises(TaskCancelledError):
        ray.get(queued)
    touch(gate)
    ray.get(blocked)
    ray.get(a.other.remote())
    assert not os.path.exists(tmp_path / "ran")


@pytest.mark.parametrize("value", [None, 3, "ref", []])
def test_only_references_can_be_cancelled(value):
    with pytest.raises(TypeError):
        ray.cancel(value)
