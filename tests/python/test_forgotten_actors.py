"""Dead actors that the head has forgotten: a process that gets a handle of one later hears that it
is dead, instead of waiting for somebody who may still be making it."""

import pytest

import ray


@ray.remote(num_cpus=0)
class Actor:
    def answer(self):
        return "alive"


@ray.remote
def ask(handles):
    try:
        return ray.get(handles[0].answer.remote(), timeout=60)
    except ray.exceptions.ActorDiedError as error:
        return str(error)


@pytest.fixture(autouse=True)
def cluster():
    ray.init(num_cpus=1, log_to_driver=False, _system_config={"dead_actors_kept": 0})
    yield
    ray.shutdown()


def test_a_handle_of_an_actor_that_was_forgotten():
    actor = Actor.remote()
    assert ray.get(ask.remote([actor])) == "alive"
    ray.kill(actor)
    with pytest.raises(ray.exceptions.ActorDiedError):
        while True:
            ray.get(actor.answer.remote(), timeout=60)
    # This process has not called the actor before; the first process was told of the death. As long
    # as a node may be silent, another process may be about to register an actor, so the stranger
    # waits for that time. Only its own is short: the head would lose a busy node.
    stranger = ask.options(runtime_env={"env_vars": {"RAY_node_timeout_ms": "2000"}})
    assert "does not know it" in ray.get(stranger.remote([actor]), timeout=60)
