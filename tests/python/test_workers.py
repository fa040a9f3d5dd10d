"""Tests which worker processes of a node run a task, and for what they wait."""

import os
import subprocess

import ray
from waiting import touch, until, wait_for


def rayctl(*words):
    address = ray.get_runtime_context().gcs_address
    return subprocess.run(
        ["rayctl", *words, f"--address={address}"], check=True, capture_output=True, text=True
    ).stdout


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
    probes = [one.remote()]

    def is_starved():
        probes.append(one.remote())
        return "have waited longer" in rayctl("status")

    until(is_starved)
    touch(tmp_path / "starved")
    assert ray.get([holder, waiting, *probes], timeout=60) == [1, 2] + [1] * len(probes)


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


def test_max_workers_bounds_tasks_but_neither_actors_nor_what_waits_for_children(
    no_cluster, capfd, tmp_path
):
    """A program that waits for a process because of the limit is told so on every page, and once in
    the driver's log."""
    ray.init(num_cpus=2, _system_config={"max_workers": 4, "infeasible_warning_after_ms": 100})

    @ray.remote(num_cpus=0)
    class Actor:
        def pid(self):
            return os.getpid()

    actors = [Actor.remote() for _ in range(8)]
    assert len(set(ray.get([actor.pid.remote() for actor in actors], timeout=60))) == 8

    @ray.remote(num_cpus=0)
    def wait():
        wait_for(tmp_path / "go")

    waiting = [wait.remote() for _ in range(6)]
    until(lambda: "max_workers" in rayctl("debug"))
    assert "max_workers" in rayctl("status")
    until(lambda: "max_workers" in capfd.readouterr().err)
    touch(tmp_path / "go")
    ray.get(waiting, timeout=60)

    @ray.remote
    def nested(depth):
        return 0 if depth == 0 else 1 + ray.get(nested.remote(depth - 1))

    assert ray.get(nested.remote(12), timeout=60) == 12
    until(lambda: "Nothing waits." in rayctl("debug"))
    assert "max_workers" not in capfd.readouterr().err
