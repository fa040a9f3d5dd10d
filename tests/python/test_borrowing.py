"""References that one process lends to another stay readable, whatever messages cross on the
way."""

import os
import signal

import pytest

import ray

pytestmark = pytest.mark.usefixtures("cluster")


@ray.remote
class Keeper:
    refs = None

    def keep(self, refs):
        self.refs = refs

    def give(self):
        return self.refs

    def make(self):
        self.refs = [ray.put("kept")]
        return self.refs

    def pid(self):
        return os.getpid()

    def part_with(self):
        refs, self.refs = self.refs, None
        return refs


def test_a_borrower_lets_go_while_its_result_is_on_the_way_to_the_owner():
    for _ in range(10):
        keeper = Keeper.remote()
        for i in range(10):
            ray.get(keeper.keep.remote([ray.put(i)]))
            given = keeper.give.remote()
            # The reference in the argument is registered before either result leaves.
            ray.get(keeper.keep.remote([ray.put(-1)]))
            assert ray.get(ray.get(given)[0]) == i


def test_a_borrower_lets_go_while_the_owner_lends_it_the_object_again():
    keeper = Keeper.remote()
    for _ in range(300):
        refs = ray.get(keeper.make.remote())
        again = keeper.part_with.remote()
        del refs
        # This call comes later, so that the owner has heard which references were let go.
        ray.get(keeper.give.remote())
        assert ray.get(ray.get(again)[0]) == "kept"


@ray.remote
def pid_of(keeper):
    return ray.get(keeper.pid.remote())


def test_an_owner_that_does_not_answer_delays_only_the_caller_that_is_lent_its_object():
    owner, lender = Keeper.remote(), Keeper.remote()
    ray.get(lender.keep.remote(ray.get(owner.make.remote())))
    stopped, expected = ray.get([owner.pid.remote(), lender.pid.remote()])
    # The worker of this task has a connection to the lender before anything waits.
    assert ray.get(pid_of.remote(lender)) == expected
    os.kill(stopped, signal.SIGSTOP)
    try:
        given = lender.give.remote()
        assert not ray.wait([given], timeout=0.5)[0]
        assert ray.get(pid_of.remote(lender), timeout=60) == expected
        assert not ray.wait([given], timeout=0)[0]
    finally:
        os.kill(stopped, signal.SIGCONT)
    assert ray.get(ray.get(given)[0]) == "kept"
