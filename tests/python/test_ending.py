"""A worker ends while answers wait to leave: every finished task has its result and does not run
again."""

import ctypes
import os
import signal

import pytest
import ray
from waiting import touch

pytestmark = pytest.mark.usefixtures("cluster")
BEFORE = 10


@ray.remote(num_cpus=4, max_retries=1)
def work(path, i, how=None):
    """Takes a few microseconds, because answers of longer tasks leave at once. All ways to end are
    in one function, because a function that a worker has to load first lets answers leave, too."""
    if how:
        WAYS[how]()
    file = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.write(file, b"%d " % i)
    os.close(file)
    return i


def exit_at_once():
    os._exit(3)


def kill_itself():
    os.kill(os.getpid(), signal.SIGKILL)


def kill_its_group():
    os.killpg(os.getpgrp(), signal.SIGKILL)


def terminate_itself():
    signal.raise_signal(signal.SIGTERM)


def abort():
    os.abort()


def read_nothing():
    ctypes.string_at(0)


def fault_in_a_thread():
    import threading

    thread = threading.Thread(target=read_nothing)
    thread.start()
    thread.join()


# Tasks get the name of a way, because an argument that takes its time to arrive lets earlier
# answers leave.
WAYS = {
    way.__name__: way
    for way in (
        exit_at_once,
        kill_itself,
        kill_its_group,
        terminate_itself,
        abort,
        read_nothing,
        fault_in_a_thread,
    )
}


@pytest.mark.parametrize("how", WAYS)
def test_what_was_finished_does_not_run_again(tmp_path, how):
    for turn in range(4):
        ran = tmp_path / str(turn)
        ran.touch()
        ray.get(work.remote(os.devnull, 0))
        before = [work.remote(str(ran), i) for i in range(BEFORE)]
        last = work.remote(str(ran), -1, how)
        assert ray.get(before) == list(range(BEFORE))
        with pytest.raises(ray.exceptions.WorkerCrashedError):
            ray.get(last)
        assert sorted(map(int, ran.read_text().split())) == list(range(BEFORE))


@ray.remote(num_cpus=1)
class Counter:
    def __init__(self):
        self.n = 0

    def add(self, how=None):
        if how:
            WAYS[how]()
        self.n += 1
        return self.n

    def large(self, how=None):
        if how:
            WAYS[how]()
        # This is inside the answer, and several of them are more than a socket takes at once.
        return b"x" * 90_000


@pytest.mark.parametrize("how", WAYS)
def test_calls_that_an_actor_finished_have_their_results(how):
    counter = Counter.remote()
    done = [counter.add.remote() for _ in range(BEFORE)]
    last = counter.add.remote(how)
    assert ray.get(done) == list(range(1, BEFORE + 1))
    with pytest.raises(ray.exceptions.ActorDiedError):
        ray.get(last)


def test_answers_larger_than_a_socket_leave_too():
    counter = Counter.remote()
    done = [counter.large.remote() for _ in range(50)]
    last = counter.large.remote("read_nothing")
    assert [len(value) for value in ray.get(done)] == 50 * [90_000]
    with pytest.raises(ray.exceptions.ActorDiedError):
        ray.get(last)


@ray.remote(num_cpus=4, max_retries=0)
def fork_and(how, path):
    if os.fork() == 0:
        touch(path)
        WAYS[how]()
    os.wait()
    return os.path.exists(path)


@pytest.mark.parametrize("how", ["exit_at_once", "abort", "read_nothing", "kill_itself"])
def test_a_forked_child_that_ends_sends_nothing_of_its_parent(tmp_path, how):
    (tmp_path / "ran").touch()
    answers = [work.remote(str(tmp_path / "ran"), i) for i in range(BEFORE)] + [
        fork_and.remote(how, str(tmp_path / "child"))
    ]
    assert ray.get(answers) == [*range(BEFORE), True]


@ray.remote(num_cpus=1)
def call(function):
    function()


@ray.remote(num_cpus=1)
def handled_itself():
    caught = []
    signal.signal(signal.SIGTERM, lambda *_: caught.append("TERM"))
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), 0)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    return caught


def test_a_signal_that_the_task_handles_changes_nothing():
    assert ray.get([handled_itself.remote() for _ in range(3)]) == 3 * [["TERM"]]
    with pytest.raises(TypeError):
        ray.get(call.remote(lambda: os.kill("1", signal.SIGTERM)))
    with pytest.raises(ProcessLookupError):
        ray.get(call.remote(lambda: os.kill(2**22 + 1, signal.SIGTERM)))


@ray.remote(max_retries=0, num_cpus=4)
def terminated_in(name):
    """Sends SIGTERM while the worker is in its own function `name`, which runs before or after a
    task."""
    if name:
        from ray._private import worker_main

        def terminated(*_):
            os.kill(os.getpid(), signal.SIGTERM)
            signal.pause()

        setattr(worker_main, name, terminated)
    # This takes a while, since the worker looks only at the output of longer tasks.
    sum(range(100_000))
    return os.getpid()


@pytest.mark.parametrize("name", ["task_begins", "wrote_unmarked"])
def test_a_signal_beside_a_task_ends_the_process(cluster, name):
    # Output of a function that wrote nothing is not marked in advance, but that of a new function
    # is.
    for _ in range(6):
        ray.get(terminated_in.remote(None))
    new = ray.remote(max_retries=0, num_cpus=4)(lambda: None)
    with pytest.raises(ray.exceptions.WorkerCrashedError) as raised:
        ray.get([terminated_in.remote(name), new.remote()])
    assert "SIGTERM" in str(raised.value) and "Exception ignored" not in str(raised.value)
