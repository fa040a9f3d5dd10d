"""Objects live as long as somebody refers to them, and not longer: the store is empty when
references are dropped, or their holders die."""

import contextlib
import signal

import pytest

import reference_graphs
from census import Line
from cluster import cluster
from waiting import eventually
from driver import Driver
from raw_rpc import parse

PRELUDE = """
import gc, os, signal, sys, threading, weakref
from ray import cloudpickle
BIG = 200_000
def big(): return ray.put(np.ones(BIG, dtype=np.uint8))
def whole(value): return int(value.sum()) == BIG

@ray.remote
def makes(n): return [big() for _ in range(n)]
@ray.remote
def read(refs): return all(map(whole, ray.get(refs)))
@ray.remote
def lends(refs): return [refs, {"again": refs[0]}]
@ray.remote(num_returns="streaming")
def items(n):
    for _ in range(n): yield np.ones(BIG, dtype=np.uint8)
@ray.remote(num_returns="streaming")
def refs_as_items(n):
    for _ in range(n): yield [big()]
@ray.remote(num_returns="streaming", max_retries=0)
def fails_after(n):
    for _ in range(n): yield np.ones(BIG, dtype=np.uint8)
    raise ValueError("as asked")
@ray.remote(max_retries=0)
def raises(refs):
    error = ValueError("with a reference")
    error.refs = refs + [big()]
    raise error
@ray.remote(max_retries=0)
def fails_with(array):
    error = ValueError("its traceback leads to this frame")
    raise error
@ray.remote(max_retries=0)
def dies(refs):
    mine = [refs, big()]
    os.kill(os.getpid(), signal.SIGKILL)

@ray.remote(num_cpus=0)
class Holder:
    def __init__(self, refs=()): self.refs = list(refs)
    def hold(self, refs): self.refs += refs
    def make(self): self.refs.append(big())
    def lend(self): return self.refs
    def give(self, other): return ray.get(other.hold.remote(self.refs))
    def read(self): return all(map(whole, ray.get(self.refs)))
    def drop(self): self.refs = []
    def pid(self): return os.getpid()
    def leave(self): ray.actor.exit_actor()

class Cyclic:
    def __init__(self, ref): self.me, self.ref = self, ref

class Dropper:
    def __init__(self, ref): self.ref = ref
    def __del__(self): held.clear()

held = []
"""

# Maps a name to three texts of code: one that makes and holds references, one that must be true
# while they are held, and one that drops all of them.
CASES = {
    "values": (
        "outer = ray.put([big(), {'k': (big(), [big()])}])",
        "whole(ray.get(ray.get(outer)[1]['k'][1][0]))",
        "del outer",
    ),
    "values three deep": (
        "outer = ray.put([ray.put([ray.put([big()])])])",
        "whole(ray.get(ray.get(ray.get(ray.get(outer)[0])[0])[0]))",
        "del outer",
    ),
    "arguments": (
        "result = read.remote([big(), big()]); late = read.remote([big()])",
        "ray.get(result)",
        "del result, late",
    ),
    "an array by value": (
        "late = ones.remote(BIG); sent = read.remote([ray.put(ray.get(late))])",
        "ray.get(sent)",
        "del late, sent",
    ),
    "results": ("refs = ray.get(makes.remote(3))", "all(map(whole, ray.get(refs)))", "del refs"),
    "results nobody looks at": ("ref = makes.remote(3); ray.wait([ref])", "True", "del ref"),
    "results dropped while they are made": (
        "ref = makes.remote(3); keep = big(); del ref",
        "whole(ray.get(keep))",
        "del keep",
    ),
    "results lent on": (
        "refs = ray.get(lends.remote([big()]))",
        "whole(ray.get(refs[1]['again']))",
        "del refs",
    ),
    "an actor's state": (
        "a = Holder.remote([big()]); ray.get(a.make.remote())",
        "ray.get(a.read.remote())",
        "ray.get(a.drop.remote())",
    ),
    "an actor that goes": (
        "a = Holder.remote([big()]); ray.get(a.make.remote()); refs = ray.get(a.lend.remote())",
        "all(map(whole, ray.get(refs)))",
        "del a, refs",
    ),
    "an actor that is killed": (
        "a = Holder.remote([big()]); ray.get(a.make.remote()); refs = ray.get(a.lend.remote())",
        "ray.get(a.read.remote())",
        "ray.kill(a); del refs",
    ),
    "an actor that exits": (
        "a = Holder.remote([big()]); ray.get(a.make.remote())",
        "ray.get(a.read.remote())",
        "a.leave.remote()",
    ),
    "an actor's process that is killed": (
        "a = Holder.remote([big()]); ray.get(a.make.remote()); b = Holder.remote(ray.get(a.lend.remote()))",
        "ray.get(b.read.remote())",
        "os.kill(ray.get(a.pid.remote()), 9); del b",
    ),
    "a detached actor's arguments": (
        "a = Holder.options(lifetime='detached', name='d').remote([big()])",
        "ray.get(a.read.remote())",
        "ray.kill(a)",
    ),
    "borrowed and lent again": (
        "a = Holder.remote([big()]); b = Holder.remote(); ray.get(a.give.remote(b)); ray.get(a.drop.remote())",
        "ray.get(b.read.remote())",
        "ray.get(b.drop.remote())",
    ),
    "borrowed from a killed borrower": (
        "a = Holder.remote([big()]); b = Holder.remote(); ray.get(a.give.remote(b)); ray.kill(a)",
        "ray.get(b.read.remote())",
        "ray.get(b.drop.remote())",
    ),
    "a worker that dies with borrows": (
        "ref = big(); lost = dies.remote([ref]); ray.wait([lost])",
        "whole(ray.get(ref))",
        "del ref, lost",
    ),
    "an exception that its own frame names": (
        "ref = fails_with.remote(big()); ray.wait([ref])",
        "True",
        "del ref",
    ),
    "a cycle": (
        "c = Cyclic(big()); d = Cyclic(c.ref)",
        "whole(ray.get(c.ref))",
        "del c, d; gc.collect()",
    ),
    "a cycle in a value": (
        "l = [big()]; l.append(l); ref = ray.put(l); got = ray.get(ref)",
        "whole(ray.get(got[1][1][0]))",
        "del l, ref, got; gc.collect()",
    ),
    "a thread": (
        "held.append(big())",
        "True",
        "t = threading.Thread(target=held.clear); t.start(); t.join()",
    ),
    "__del__": ("held.append(big()); d = Dropper(held[0])", "True", "del d"),
    "a signal handler": (
        "held.append(big()); signal.signal(signal.SIGUSR1, lambda *_: held.clear())",
        "True",
        "signal.raise_signal(signal.SIGUSR1)",
    ),
    "a weakref callback": (
        "held.append(big()); c = Cyclic(None); w = weakref.ref(c, lambda _: held.clear())",
        "True",
        "del c; gc.collect()",
    ),
    "a callback": (
        "held.append(big()); slow = makes.remote(1); slow.future().add_done_callback(lambda _: held.clear())",
        "True",
        "ray.wait([slow]); del slow",
    ),
    "an attempt to get too early": (
        "ref = makes.remote(2)\ntry: ray.get(ref, timeout=0)\nexcept ray.exceptions.GetTimeoutError: pass",
        "True",
        "del ref",
    ),
    "a cancelled task's arguments": (
        "ref = big(); t = [read.remote([ref]) for _ in range(50)]\nfor one in t: ray.cancel(one)",
        "whole(ray.get(ref))",
        "del ref, t, one",
    ),
    "items of a generator": (
        "g = items.remote(3); refs = list(g)",
        "all(map(whole, ray.get(refs)))",
        "del g, refs",
    ),
    "items nobody takes": (
        "g = items.remote(4); first = next(g)",
        "whole(ray.get(first))",
        "del g, first",
    ),
    "a generator nobody looks at": (
        "g = items.remote(3); ray.wait([g.completed()])",
        "True",
        "del g",
    ),
    "a generator dropped while it runs": (
        "g = items.remote(50); first = next(g); del g",
        "whole(ray.get(first))",
        "del first",
    ),
    "a generator that is cancelled": (
        "g = items.remote(50); first = next(g); ray.cancel(g)",
        "whole(ray.get(first))",
        "del g, first",
    ),
    "a generator that fails": (
        "g = fails_after.remote(2); refs = list(g)",
        "whole(ray.get(refs[0]))",
        "del g, refs",
    ),
    "references as items": (
        "g = refs_as_items.remote(3); first = next(g)",
        "whole(ray.get(ray.get(first)[0]))",
        "del g, first",
    ),
    "views": ("view = ray.get(big())[10:]", "int(view.sum()) == BIG - 10", "del view"),
}

# References in something that was not pickled as a value keep their objects until the process that
# pickled them ends.
OUT_OF_BAND = {
    "an exception": (
        "try: ray.get(raises.remote([big()]))\nexcept ValueError as error: kept = error",
        "all(map(whole, ray.get(kept.cause.refs)))",
    ),
    "an exception nobody sees": ("ref = raises.remote([big()]); ray.wait([ref])", "True"),
    "a closure": (
        "ref = big()\n@ray.remote\ndef closed(): return whole(ray.get(ref))",
        "ray.get(closed.remote())",
    ),
    "pickled by hand": (
        "data = cloudpickle.dumps([big()]); back = cloudpickle.loads(data)",
        "whole(ray.get(back[0]))",
    ),
    "pickled by hand and read by an actor": (
        "a = Holder.remote(); data = cloudpickle.dumps(big()); ray.get(a.__ray_call__.remote(lambda self, d: self.refs.append(cloudpickle.loads(d)), data))",
        "ray.get(a.read.remote())",
    ),
}


class World:
    def __init__(self, running):
        self.running, self.shell = running, running.shell
        self.lines = [Line(record["object_store_socket"]) for record in running.records().values()]

    def driver(self):
        driver = Driver(
            self.shell, init="ray.init(log_to_driver=False)", RAY_ADDRESS=self.running.address
        )
        driver.run(PRELUDE)
        return driver

    def objects(self):
        return sum(parse(line.ask("ObjectStoreService.GetStats")).get(3, 0) for line in self.lines)

    def empty(self):
        return eventually(lambda: self.objects() == 0) or f"{self.objects()} objects are left"


@pytest.fixture(scope="module")
def world():
    with cluster(cpus=4, connect=False) as running:
        yield World(running)


@pytest.fixture(scope="module")
def driver(world):
    driver = world.driver()
    yield driver
    driver.close()


@pytest.mark.parametrize("case", CASES)
def test_dropped_references_empty_the_stores(world, driver, case):
    hold, meanwhile, drop = CASES[case]
    driver.run(hold)
    assert driver.run(meanwhile) is True
    driver.run(drop)
    assert world.empty() is True


@pytest.mark.parametrize("case", {**CASES, **OUT_OF_BAND})
def test_a_killed_driver_leaves_no_objects(world, case):
    hold, meanwhile, *_ = {**CASES, **OUT_OF_BAND}[case]
    driver = world.driver()
    try:
        driver.run(hold)
        assert driver.run(meanwhile) is True
        driver.process.send_signal(signal.SIGKILL)
    finally:
        with contextlib.suppress(OSError):
            driver.close()
    if "detached" in case:
        other = world.driver()
        other.run(
            "import ray.util; [ray.kill(ray.get_actor(e['name'], namespace=e['namespace'])) for e in ray.util.list_named_actors(all_namespaces=True)]"
        )
        other.close()
    assert world.empty() is True


@pytest.mark.parametrize("case", OUT_OF_BAND)
def test_a_driver_that_ends_leaves_no_objects(world, case):
    hold, meanwhile = OUT_OF_BAND[case]
    driver = world.driver()
    driver.run(hold)
    assert driver.run(meanwhile) is True
    driver.close()
    assert driver.process.returncode == 0
    assert world.empty() is True


def test_a_borrower_that_never_spoke_to_the_owner(world):
    """The owner lends a reference to an actor, which lends it to another driver. That driver only
    drops it, so that the owner never hears of it."""
    owner, borrower = world.driver(), world.driver()
    named = "Holder.options(name='between', namespace='lent', lifetime='detached', get_if_exists=True).remote()"
    owner.run(f"between = {named}; ref = big(); ray.get(between.hold.remote([ref]))")
    borrower.run(f"between = {named}; got = ray.get(between.lend.remote())")
    owner.run("ray.get(between.drop.remote()); del ref")
    assert borrower.run("whole(ray.get(got[0]))") is True
    borrower.run("del got")
    assert world.empty() is True
    owner.run("ref = big(); ray.get(between.hold.remote([ref]))")
    third = world.driver()
    third.run(f"between = {named}; got = ray.get(between.lend.remote()); del got")
    owner.run("ray.get(between.drop.remote()); del ref")
    assert world.empty() is True
    owner.run("ray.kill(between)")
    for driver in (owner, borrower, third):
        driver.close()


def test_references_are_dropped_while_the_interpreter_ends(world):
    program = world.running.program("""
        import atexit, threading, weakref
        import numpy as np
        import ray
        class Last:
            def __init__(self, ref): self.ref, self.me = ref, self
            def __del__(self): self.ref = None
        ray.init()
        held = [Last(ray.put(np.ones(200_000, dtype=np.uint8))) for _ in range(3)]
        atexit.register(held.clear)
        threading.Thread(target=lambda: [held.pop(), threading.main_thread().join(), held and held.pop()]).start()
        print("end")
    """)
    said, _ = program.communicate(timeout=60)
    assert program.returncode == 0 and said == "end\n", said
    assert world.empty() is True


def test_references_of_a_dead_node_are_released():
    with cluster(cpus=1) as running:
        import numpy as np

        import ray

        session = running.join(cpus=1, resources={"there": 1})
        running.await_nodes(2)

        @ray.remote(resources={"there": 0.1})
        class There:
            def __init__(self, refs):
                self.refs = refs + [ray.put(np.ones(300_000, dtype=np.uint8))]

            def lend(self):
                return self.refs

        here = Line(running.records()[running.head_node]["object_store_socket"])
        there = There.remote([ray.put(np.ones(300_000, dtype=np.uint8))])
        refs = ray.get(there.lend.remote(), timeout=120)
        assert [len(value) for value in ray.get(refs, timeout=120)] == [300_000] * 2
        running.kill(session, "ray-node-manager")
        running.await_nodes(1)
        assert len(ray.get(refs[0], timeout=120)) == 300_000
        del refs, there

        def left():
            stats = parse(here.ask("ObjectStoreService.GetStats"))
            return stats.get(3, 0), stats.get(4, 0)

        # The copy of an object whose owner's node died goes with that node, because nobody else is
        # left who could free it.
        assert eventually(lambda: left() == (0, 0)), left()


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_over_references_leave_no_objects(world, seed):
    """`empty` checks that the stores are empty while the drivers still live."""

    def empty():
        assert world.empty() is True

    reference_graphs.run(seed, world.running, look=empty)
