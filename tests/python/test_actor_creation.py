"""What a constructor waits for, and what happens to an actor meanwhile."""

import gc
import os

import pytest

import ray
from ray.exceptions import ActorDiedError
from ray.util.state import list_actors
from waiting import PATIENCE_S, until

pytestmark = pytest.mark.usefixtures("cluster")

# Above the limit of inline arguments, and without a buffer that would become an object by itself.
MANY = list(range(100_000))


@ray.remote(num_cpus=0)
class Holder:
    def __init__(self, held=None):
        self.held = held

    def size(self):
        return len(self.held)

    def die(self):
        os._exit(1)

    def make(self, name, lifetime, held):
        self.made = Holder.options(name=name, lifetime=lifetime, max_restarts=-1).remote(held)
        return self.made


def state_of(actor):
    [state] = list_actors(filters=[("actor_id", "=", actor._actor_id.hex())])
    return state["state"]


def death_of(ref):
    with pytest.raises(ActorDiedError) as caught:
        ray.get(ref, timeout=PATIENCE_S)
    return str(caught.value)


def size_after_restart(actor):
    """The answer of the actor's next life."""

    def size():
        try:
            return ray.get(actor.size.remote(), timeout=PATIENCE_S)
        except ray.exceptions.ActorUnavailableError:
            return None

    ray.wait([actor.die.remote()], timeout=PATIENCE_S)
    return until(size, lambda answer: answer is not None)


@pytest.mark.parametrize("options", [{}, {"lifetime": "detached", "name": "many"}])
def test_a_large_argument_without_buffers_lives_as_long_as_the_actor_needs_it(options):
    actor = Holder.options(**options).remote(MANY)
    assert ray.get(actor.size.remote(), timeout=PATIENCE_S) == len(MANY)
    ray.kill(actor)
    actor = Holder.options(**options, max_restarts=2).remote(MANY)
    assert ray.get(actor.size.remote(), timeout=PATIENCE_S) == len(MANY)
    for _ in range(2):
        gc.collect()
        assert size_after_restart(actor) == len(MANY)
    ray.kill(actor)


def test_a_restart_without_the_creator_says_that_the_argument_is_gone():
    creator = Holder.remote()
    actor = ray.get(creator.make.remote("orphan", "detached", MANY), timeout=PATIENCE_S)
    assert ray.get(actor.size.remote(), timeout=PATIENCE_S) == len(MANY)
    ray.kill(creator)
    until(lambda: state_of(creator), lambda state: state == "DEAD")
    assert ray.get(actor.size.remote(), timeout=PATIENCE_S) == len(MANY)
    ray.wait([actor.die.remote()], timeout=PATIENCE_S)
    until(lambda: state_of(actor), lambda state: state == "DEAD")
    assert "OwnerDiedError" in death_of(actor.size.remote())
