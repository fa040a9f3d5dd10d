"""Which worker processes of a node run what, and for what they wait."""

import os
import time

import ray
from waiting import touch, wait_for


@ray.remote
def one():
    return 1


def test_what_needs_a_held_resource_keeps_no_cpu_from_the_holders_child(cluster, tmp_path):
    @ray.remote(resources={"thing": 2})
    def parent():
        touch(tmp_path / "holds")
        wait_for(tmp_path / "starved")
        return ray.get(one.remote())

    @ray.remote(num_cpus=4, resources={"thing": 1})
    def large():
        return 2

    holder = parent.remote()
    wait_for(tmp_path / "holds")
    waiting = large.remote()
    # Nothing tells when it is starved (ten times lease_revoke_after_ms). If the child came first,
    # the test would find nothing.
    time.sleep(1.5)
    touch(tmp_path / "starved")
    assert ray.get([holder, waiting], timeout=60) == [1, 2]


def test_an_actor_takes_no_process_that_owns_what_others_hold(cluster):
    @ray.remote
    def put():
        return [ray.put("kept")]

    @ray.remote
    class Actor:
        def pid(self):
            return os.getpid()

    kept = ray.get([put.remote() for _ in range(8)])
    actors = [Actor.remote() for _ in range(8)]
    ray.get([actor.pid.remote() for actor in actors])
    for actor in actors:
        ray.kill(actor)
    assert [ray.get(refs[0], timeout=60) for refs in kept] == ["kept"] * 8
