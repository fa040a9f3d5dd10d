"""Nothing is left and nothing grows: the short form of hygiene.py."""

import pytest

import hygiene
import ray
from cluster import cluster


def test_sessions_leave_nothing():
    hygiene.cycles(60)


def test_churn_leaves_nothing():
    hygiene.churn(20, 300_000_000, seed=20240601, tolerance=0.5)


def test_a_driver_may_use_any_number_of_actors_one_after_the_other():
    """The head limits how many actors one connection follows. Actors that ended do not count."""
    with cluster(settings={"subscriptions_per_connection": 20}):

        @ray.remote(num_cpus=0)
        class One:
            def __init__(self, refs):
                self.refs = refs

            def number(self, i):
                return i

        for i in range(60):
            assert ray.get(One.remote([ray.put(i)]).number.remote(i), timeout=120) == i


def test_a_dead_actor_that_was_forgotten_is_dead():
    with cluster():

        @ray.remote(num_cpus=0)
        class One:
            def number(self):
                return 1

        first = One.options(name="first", lifetime="detached").remote()
        assert ray.get(first.number.remote(), timeout=120) == 1
        ray.kill(first)
        with pytest.raises(ray.exceptions.ActorDiedError, match="ray.kill"):
            ray.get(first.number.remote(), timeout=120)
        for _ in range(150):
            ray.get(One.remote().number.remote(), timeout=120)
        with pytest.raises(ray.exceptions.ActorDiedError, match="ray.kill"):
            ray.get(first.number.remote(), timeout=120)
