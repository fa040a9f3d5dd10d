"""Actors whose creator ends right after it has made them: every process with a handle is told."""

import os

import pytest

import ray


@ray.remote(num_cpus=0)
class Made:
    def __init__(self, *arguments):
        pass

    def answer(self):
        return "alive"


@ray.remote(num_cpus=0)
class Creator:
    def make(self, *arguments):
        return Made.remote(*arguments)

    def end(self):
        os._exit(1)


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(num_cpus=2, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.mark.parametrize(
    "arguments", [(), (1,), (list(range(100_000)),)], ids=["none", "inline", "large"]
)
def test_an_actor_whose_creator_ends_at_once_is_dead(arguments):
    for _ in range(8):
        creator = Creator.remote()
        made = ray.get(creator.make.remote(*arguments))
        creator.end.remote()
        with pytest.raises(ray.exceptions.ActorDiedError):
            # The actor may live until the news of its creator's end has come.
            while True:
                assert ray.get(made.answer.remote(), timeout=60) == "alive"


def test_an_actor_whose_creator_is_killed_at_once_is_dead():
    for _ in range(8):
        creator = Creator.remote()
        made = ray.get(creator.make.remote())
        ray.kill(creator)
        with pytest.raises(ray.exceptions.ActorDiedError):
            while True:
                assert ray.get(made.answer.remote(), timeout=60) == "alive"
