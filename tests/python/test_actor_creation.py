"""Constructors wait for their arguments: what happens to an actor before these are there."""

import gc
import os
import pickle
import threading

import pytest

import ray
from ray import cloudpickle
from ray.exceptions import ActorDiedError, ActorUnavailableError
from ray.util.state import list_actors
from waiting import PATIENCE_S, answer_of, touch, until, wait_for

pytestmark = pytest.mark.usefixtures("cluster")

# This is above the limit of inline arguments, and has no buffer that would become an object by
# itself.
MANY = list(range(100_000))


@ray.remote(num_cpus=0)
class Holder:
    def __init__(self, held=None):
        self.held = held

    def size(self):
        return len(self.held)

    def die(self):
        os._exit(1)

    def keep(self, held):
        self.held = held

    def make(self, name, lifetime, held=None):
        """Creates an actor that waits for an argument for ever, or has `held`."""
        argument = never.remote() if held is None else held
        self.made = Holder.options(name=name, lifetime=lifetime, max_restarts=-1).remote(argument)
        return self.made

    def make_ref(self):
        return [never.remote()]


@ray.remote(num_cpus=0)
def when(path):
    wait_for(path)
    return [1, 2, 3]


@ray.remote(num_cpus=0)
def never():
    threading.Event().wait()


def state_of(actor):
    """Returns the state of the actor, or None while the head has not heard of it."""
    states = list_actors(filters=[("actor_id", "=", actor._actor_id.hex())])
    return states[0]["state"] if states else None


def death_of(ref):
    with pytest.raises(ActorDiedError) as caught:
        ray.get(ref, timeout=PATIENCE_S)
    return str(caught.value)


def size_after_restart(actor):
    """Returns the answer of the actor's next life."""

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

    def failure():
        # The head's news reaches this process over another connection than the state above. The
        # call in between was meant for the life that has ended.
        with pytest.raises((ActorDiedError, ActorUnavailableError)) as caught:
            ray.get(actor.size.remote(), timeout=PATIENCE_S)
        return caught.value

    died = until(failure, lambda error: isinstance(error, ActorDiedError))
    assert "OwnerDiedError" in str(died)


@pytest.mark.parametrize("name", [None, "waits"])
def test_remote_returns_while_the_argument_is_made(tmp_path, name):
    go = str(tmp_path / "go")
    actor = Holder.options(name=name).remote(when.remote(go))
    answer = actor.size.remote()
    until(lambda: state_of(actor), lambda state: state == "DEPENDENCIES_UNREADY")
    if name:
        assert ray.get_actor(name) == actor
        with pytest.raises(ValueError, match="already taken"):
            Holder.options(name=name).remote()
        assert Holder.options(name=name, get_if_exists=True).remote() == actor
    assert not ray.wait([answer], timeout=0.1)[0]
    touch(go)
    assert ray.get(answer, timeout=PATIENCE_S) == 3


def test_an_actor_that_exists_has_its_own_methods():
    @ray.remote
    class Other:
        def method_of_other(self):
            return "other"

    other = Other.options(name="of another class").remote()
    found = Holder.options(name="of another class", get_if_exists=True).remote([1])
    assert found == other and "Other" in repr(found)
    assert ray.get(found.method_of_other.remote(), timeout=PATIENCE_S) == "other"
    with pytest.raises(AttributeError):
        _ = found.size


def test_an_actor_that_waits_can_be_killed_and_frees_its_name():
    argument = never.remote()
    actor = Holder.options(name="killed").remote(argument)
    ray.kill(actor)
    assert "ray.kill" in death_of(actor.size.remote())
    actor = Holder.options(name="killed").remote(argument)
    # Now nobody has a handle.
    del actor
    actor = until(lambda: Holder.options(name="killed", get_if_exists=True).remote([1]))
    assert ray.get(actor.size.remote(), timeout=PATIENCE_S) == 1
    ray.cancel(argument, force=True)


@pytest.mark.parametrize("lifetime", [None, "detached"])
def test_an_actor_that_waits_ends_with_its_creator(lifetime):
    creator = Holder.remote()
    actor = ray.get(creator.make.remote("child", lifetime), timeout=PATIENCE_S)
    answer = actor.size.remote()
    until(lambda: state_of(actor), lambda state: state == "DEPENDENCIES_UNREADY")
    ray.kill(creator)
    assert "its owner died" in death_of(answer)
    # The name is free again.
    Holder.options(name="child").remote()


def test_an_actor_whose_argument_lost_its_owner_is_dead():
    owner = Holder.remote()
    [argument] = ray.get(owner.make_ref.remote(), timeout=PATIENCE_S)
    actor = Holder.options(name="heir").remote(argument)
    answer = actor.size.remote()
    ray.kill(owner)
    assert "OwnerDiedError" in death_of(answer)


def test_a_handle_that_pickle_wrote_does_not_keep_the_actor():
    actor = Holder.remote([1, 2])
    other = Holder.remote()
    blob = pickle.dumps([actor, actor.size])
    copy, method = pickle.loads(blob)
    assert copy == actor and ray.get(method.remote(), timeout=PATIENCE_S) == 2
    # A handle inside a value counts.
    ray.get(other.keep.remote([actor]), timeout=PATIENCE_S)
    del actor, method
    gc.collect()
    # A copy that was unpickled here counts as long as the process counted the actor before.
    assert ray.get(copy.size.remote(), timeout=PATIENCE_S) == 2
    ended = copy._actor_id.hex()
    del copy
    gc.collect()
    ray.get(other.size.remote(), timeout=PATIENCE_S)
    found = answer_of(lambda: list_actors(filters=[("actor_id", "=", ended)]))
    assert [s["state"] for s in found] == ["ALIVE"]
    ray.get(other.keep.remote(None), timeout=PATIENCE_S)
    until(
        lambda: [s["state"] for s in list_actors(filters=[("actor_id", "=", ended)])],
        lambda states: states == ["DEAD"],
    )
    late = pickle.loads(blob)[0]
    assert "references" in death_of(late.size.remote())


def test_a_handle_that_rays_cloudpickle_wrote_keeps_the_actor():
    actor = Holder.remote([1, 2])
    blob = cloudpickle.dumps({"of": actor})
    del actor
    gc.collect()
    ray.get(Holder.remote([1]).size.remote(), timeout=PATIENCE_S)
    assert ray.get(cloudpickle.loads(blob)["of"].size.remote(), timeout=PATIENCE_S) == 2
