"""A detached actor outlives the job that made it. Everything that belongs to it lives as long as it
does, on all nodes, and no longer."""

import os
import signal
import threading

import pytest
import ray

from census import Line
from cluster import cluster
from waiting import eventually
from driver import Driver
from raw_rpc import parse

PRELUDE = """
import os
BIG = 200_000
@ray.remote
def leaf(n): return np.ones(n, dtype=np.uint8)
@ray.remote(resources={"there": 0.01})
def leaf_there(n): return np.ones(n, dtype=np.uint8)
@ray.remote(resources={"there": 0.01})
def makes_there(n): return [ray.put(np.ones(n, dtype=np.uint8)), leaf.remote(n), leaf_there.remote(n)]
@ray.remote(resources={"there": 0.01})
class Child:
    def __init__(self): self.refs = [ray.put(np.ones(BIG, dtype=np.uint8)), leaf.remote(BIG)]
    def lend(self): return self.refs
    def read(self): return all(int(ray.get(ref).sum()) == BIG for ref in self.refs)
@ray.remote(resources={"there": 0.01})
def makes_a_child():
    child = Child.remote()
    return child, ray.get(child.read.remote())
@ray.remote
class Keeper:
    def __init__(self): self.refs, self.children = [], []
    def fill(self):
        self.refs += [ray.put(np.ones(BIG, dtype=np.uint8)), leaf.remote(BIG), leaf_there.remote(BIG)]
        self.refs += ray.get(makes_there.remote(BIG))
        self.children.append(Child.remote())
        self.refs += ray.get(self.children[-1].lend.remote())
        self.borrowed, read = ray.get(makes_a_child.remote())
        return read
    def read(self): return [int(ray.get(ref).sum()) == BIG for ref in self.refs] + ray.get([child.read.remote() for child in self.children])
    def drop(self): self.refs, self.children, self.borrowed = [], [], None
"""
WHOLE = 8 + 1


def objects(running):
    return [
        parse(Line(record["object_store_socket"]).ask("ObjectStoreService.GetStats")).get(3, 0)
        for record in running.records().values()
    ]


def workers(running):
    return sorted(
        command
        for command in running.processes().values()
        if command.startswith("ray::") and not command.startswith(("ray::IDLE", "ray::fork"))
    )


@pytest.fixture
def world():
    with cluster(cpus=4, connect=False) as running:
        running.join(cpus=4, resources={"there": 1})
        yield running


def driver(running, prelude=True):
    driver = Driver(
        running.shell,
        init="ray.init(log_to_driver=False, namespace='n')",
        RAY_ADDRESS=running.address,
    )
    driver.run(PRELUDE if prelude else "pass")
    return driver


def settles(running):
    return eventually(lambda: sum(objects(running)) == 0) or objects(running)


def test_what_is_its_own_stays_until_it_drops_it(world):
    first = driver(world)
    first.run(
        "keeper = Keeper.options(name='keeper', lifetime='detached').remote(); mine = ray.put(np.ones(BIG)); left = leaf_there.remote(BIG); ray.wait([left])"
    )
    assert first.run("ray.get(keeper.fill.remote())") is True
    first.close()
    second = driver(world, prelude=False)
    second.run("keeper = ray.get_actor('keeper')")
    assert second.run("ray.get(keeper.read.remote())") == WHOLE * [True]
    assert second.run("ray.get(keeper.fill.remote())") is True, "its job has ended, and it goes on"
    assert second.run("ray.get(keeper.read.remote())") == 2 * WHOLE * [True]
    second.run("ray.get(keeper.drop.remote())")
    assert settles(world) is True, "what belonged to the first driver is gone, too"
    assert second.run(
        "ray.get(keeper.fill.remote()) and ray.get(keeper.read.remote())"
    ) == WHOLE * [True]
    second.close()


@pytest.mark.parametrize(
    "how",
    [
        "ray.kill(keeper)",
        "os.kill(ray.get(keeper.__ray_call__.remote(lambda self: __import__('os').getpid())), 9)",
    ],
)
def test_it_all_ends_with_the_actor(world, how):
    first = driver(world)
    first.run("keeper = Keeper.options(name='keeper', lifetime='detached').remote()")
    assert first.run("ray.get(keeper.fill.remote())") is True
    first.process.kill()
    first.process.wait()
    second = driver(world)
    second.run("keeper = ray.get_actor('keeper')")
    assert second.run("ray.get(keeper.fill.remote())") is True
    second.run(how)
    assert settles(world) is True
    second.close()
    assert eventually(lambda: not workers(world)) or workers(world) == []


def test_after_a_restart_of_the_head_and_of_the_actor(world):
    first = driver(world)
    first.run(
        "keeper = Keeper.options(name='keeper', lifetime='detached', max_restarts=-1).remote()"
    )
    assert first.run("ray.get(keeper.fill.remote())") is True
    first.close()
    world.kill(world.head_node, "ray-head")
    assert world.shell.run("start", "--head", f"--port={world.port}").returncode == 0
    second = driver(world)
    second.run("keeper = ray.get_actor('keeper')")
    assert second.run("ray.get(keeper.read.remote())", timeout=60) == WHOLE * [True]
    assert second.run("ray.get(keeper.fill.remote())") is True
    second.run("ray.kill(keeper, no_restart=False)")
    assert second.run(
        "ray.get(keeper.fill.options(max_task_retries=-1).remote()) and ray.get(keeper.read.remote())",
        timeout=60,
    ) == WHOLE * [True]
    second.run("ray.get(keeper.drop.remote())")
    assert settles(world) is True
    second.close()


def test_a_handle_leaves_its_maker_when_the_head_has_the_actor_on_disk():
    """Nobody counts the handles of such an actor. If a handle left its maker earlier, another
    process could ask the head for an actor that it does not know yet, and be told that it is
    gone."""
    with cluster(cpus=1) as c:
        (head,) = [pid for pid, command in c.processes().items() if "ray-head" in command]

        @ray.remote(num_cpus=0, lifetime="detached")
        class Detached:
            def answer(self):
                return 1

        @ray.remote
        def ask(actor):
            return ray.get(actor.answer.remote())

        for _ in range(5):
            os.kill(head, signal.SIGSTOP)
            resume = threading.Timer(0.2, os.kill, (head, signal.SIGCONT))
            resume.start()
            try:
                answers = [ask.remote(actor := Detached.remote()), actor.answer.remote()]
            finally:
                resume.join()
            assert ray.get(answers, timeout=60) == [1, 1]
