"""Calls that wait for a head which hangs or is lost: a signal (Ctrl-C) ends the wait, a request is
taken back, and a question that a lost head has taken is asked again."""

import os
import signal
import threading

import pytest
from cluster import cluster, kill, stopped
from waiting import until

import ray
from ray.util import get_placement_group, placement_group, remove_placement_group
from ray.util.placement_group import placement_group_table


class Interruption(Exception):
    pass


def interrupt(call):
    """Calls it, and a handler of a signal raises in the middle. The signal is repeated, because the
    first one may come just before the call waits."""
    over, raised = threading.Event(), []

    def handle(*_):
        # A later signal may come when the call has ended. This is a list, because setting the event
        # takes a lock, which the interrupted code may hold.
        if not raised:
            raised.append(True)
            raise Interruption

    def send():
        while not over.wait(0.3) and not raised:
            os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, handle)
    sender = threading.Thread(target=send)
    try:
        with pytest.raises(Interruption):
            sender.start()
            call()
    finally:
        over.set()
        sender.join()
        signal.signal(signal.SIGUSR1, before)


@pytest.fixture(scope="module")
def running():
    with cluster() as c:
        yield c


@pytest.fixture
def hung_head(running):
    return lambda: stopped(running.pid(running.head_node, "ray-head"))


@ray.remote(num_cpus=0)
class Named:
    pass


def test_the_removal_of_a_group_goes_on_when_its_wait_is_interrupted(hung_head):
    group = placement_group([{"CPU": 1}], name="removed")
    assert group.wait(30)
    with hung_head():
        interrupt(lambda: remove_placement_group(group))
    until(lambda: placement_group_table(group)["state"], lambda state: state == "REMOVED")


def test_a_named_group_whose_creation_is_interrupted_goes(hung_head):
    with hung_head():
        interrupt(lambda: placement_group([{"CPU": 1}], name="made", lifetime="detached"))
    until(
        lambda: [one["state"] for one in placement_group_table().values() if one["name"] == "made"],
        lambda states: set(states) <= {"REMOVED"},
    )
    with pytest.raises(ValueError):
        get_placement_group("made")


@pytest.mark.parametrize("lifetime", [None, "detached"])
def test_a_named_actor_whose_creation_is_interrupted_goes(hung_head, lifetime):
    name = f"actor {lifetime}"
    with hung_head():
        interrupt(lambda: Named.options(name=name, lifetime=lifetime).remote())

    def taken():
        try:
            return bool(ray.get_actor(name))
        except ValueError:
            return False

    until(taken, lambda is_taken: not is_taken)


def test_a_question_is_interrupted(hung_head):
    with hung_head():
        interrupt(ray.nodes)
    assert len(ray.nodes()) == 1


QUESTIONS = {
    "nodes": lambda: len(ray.nodes()) == 1,
    "get_actor": lambda: bool(ray.get_actor("there")),
    "named actors": lambda: ray.util.list_named_actors() == ["there"],
    "a group's state": lambda: not placement_group_table(),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_that_the_head_took_with_it_is_asked_again(question):
    with cluster() as c:
        there = Named.options(name="there").remote()
        ray.get(there.__ray_ready__.remote(), timeout=60)
        answers = []
        asker = threading.Thread(target=lambda: answers.append(QUESTIONS[question]()))
        head = c.pid(c.head_node, "ray-head")
        with stopped(head):
            asker.start()
            # The question has been sent, and nobody reads it.
            asker.join(timeout=0.5)
            kill(head)
        c.shell.ok("start", "--head", f"--port={c.port}")
        asker.join(timeout=60)
        assert answers == [True]
