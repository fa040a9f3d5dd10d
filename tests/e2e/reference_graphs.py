"""Runs a random program over references: what is referred to can be read, and what is not is gone.
One seed decides the program.

    PYTHONPATH=build/python python3 tests/e2e/reference_graphs.py [--seeds N] [--first N]
        [--steps N] [--drivers N]

Several drivers, each with an actor, put objects that hold references to others, get them from
tasks, lend them to actors and, by an actor with a name, to each other, read everything that they
refer to and drop it. Workers, actors and drivers are killed in between. What a killed process owned
may be lost, and an error says so; nothing else may be lost. At the end everything is dropped in
random order with more kills, and the caller checks that the stores are empty.
"""

import argparse
import contextlib
import os
import random
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from driver import Driver, Failed

LOST = {
    "ObjectLostError",
    "OwnerDiedError",
    "ReferenceCountingAssertionError",
    "WorkerCrashedError",
    "ActorDiedError",
}
SIZES = (10, 150_000)
PRELUDE = """
import os
v = {}
def node(k, children, size): return {"k": k, "children": list(children), "pad": np.full(size, k % 251, dtype=np.uint8)}
def deep(ref, depth=0):
    value = ray.get(ref, timeout=120)
    assert (value["pad"] == value["k"] % 251).all()
    for child in value["children"]: deep(child, depth + 1)
    return value["k"]

@ray.remote
def make(k, children, size): return node(k, children, size)
@ray.remote
def make_inside(k, children, size): return [ray.put(node(k, children, size))]
@ray.remote
def deep_there(refs): return [deep(ref) for ref in refs]
@ray.remote(max_retries=0)
def die(refs):
    kept = [refs, ray.put(node(0, refs, 150_000))]
    os.kill(os.getpid(), 9)

class Holder:
    def __init__(self): self.refs = {}
    def hold(self, k, refs): self.refs[k] = refs[0]
    def lend(self, k): return [self.refs[k]]
    def put(self, k, child, size): self.refs[k] = ray.put(node(k, [self.refs[child]] if child in self.refs else [], size))
    def deep(self, k): return deep(self.refs[k])
    def drop(self, k): self.refs.pop(k, None)
    def pid(self): return os.getpid()
holder = ray.remote(num_cpus=0)(Holder).remote()
exchange = ray.remote(num_cpus=0)(Holder).options(name="exchange", lifetime="detached", get_if_exists=True, namespace="graphs").remote()
"""


class Object:
    """Object number `k`. owners: the processes that own the object or something that it refers
    to."""

    def __init__(self, k, owners):
        self.k, self.owners = k, frozenset(owners)


class Process:
    """A driver, with the objects to which its variables and its actor's refer."""

    def __init__(self, running, name):
        self.name, self.driver = (
            name,
            Driver(
                running.shell, init="ray.init(log_to_driver=False)", RAY_ADDRESS=running.address
            ),
        )
        self.driver.run(PRELUDE)
        self.own, self.actors = {}, {}
        self.holder_alive = True

    def run(self, code):
        return self.driver.run(code, timeout=60)


class Graphs:
    def __init__(self, rng, running, drivers):
        self.rng, self.running, self.next_k, self.names = rng, running, 0, 0
        self.killed, self.exchanged = set(), {}
        self.processes = [self.process() for _ in range(drivers)]

    def process(self):
        self.names += 1
        return Process(self.running, f"driver {self.names}")

    def k(self):
        self.next_k += 1
        return self.next_k

    def some(self, held, most):
        return self.rng.sample(
            sorted(held.values(), key=lambda o: o.k), min(len(held), self.rng.randrange(most + 1))
        )

    def any(self, held):
        return self.rng.choice(sorted(held.values(), key=lambda o: o.k)) if held else None

    def attempt(self, code, process, objects, extra=()):
        """Runs the code. Returns False when it failed because something that these objects need was
        lost."""
        try:
            process.run(code)
            return True
        except Failed as failed:
            owners = set(extra).union(*(o.owners for o in objects)) if objects else set(extra)
            assert LOST & set(failed.classes) and owners & self.killed, (
                f"{code} of {[o.k for o in objects]} with owners {owners}, killed {self.killed}: {failed}"
            )
            return False

    # ---- steps

    def put(self, process):
        k, children = self.k(), self.some(process.own, 3)
        refs = ", ".join(f"v[{c.k}]" for c in children)
        process.run(f"v[{k}] = ray.put(node({k}, [{refs}], {self.rng.choice(SIZES)}))")
        process.own[k] = Object(k, {process.name}.union(*(c.owners for c in children)))

    def task(self, process):
        k, children = self.k(), self.some(process.own, 3)
        refs = ", ".join(f"v[{c.k}]" for c in children)
        process.run(f"v[{k}] = make.remote({k}, [{refs}], {self.rng.choice(SIZES)})")
        process.own[k] = Object(k, {process.name}.union(*(c.owners for c in children)))

    def inside(self, process):
        k, children = self.k(), self.some(process.own, 2)
        refs = ", ".join(f"v[{c.k}]" for c in children)
        if self.attempt(
            f"v[{k}] = ray.get(make_inside.remote({k}, [{refs}], {self.rng.choice(SIZES)}), timeout=120)[0]",
            process,
            children,
        ):
            process.own[k] = Object(
                k, {process.name, "workers"}.union(*(c.owners for c in children))
            )

    def read(self, process):
        if one := self.any(process.own):
            if self.rng.random() < 0.5:
                self.attempt(f"assert deep(v[{one.k}]) == {one.k}", process, [one])
            else:
                self.attempt(
                    f"assert ray.get(deep_there.remote([v[{one.k}]]), timeout=120) == [{one.k}]",
                    process,
                    [one],
                )

    def lend(self, process):
        one = self.any(process.own)
        if one and process.holder_alive:
            process.run(f"ray.get(holder.hold.remote({one.k}, [v[{one.k}]]), timeout=120)")
            process.actors[one.k] = one

    def actor_puts(self, process):
        if process.holder_alive:
            k, child = self.k(), self.any(process.actors)
            process.run(
                f"ray.get(holder.put.remote({k}, {child.k if child else 0}, {self.rng.choice(SIZES)}), timeout=120)"
            )
            process.actors[k] = Object(
                k, {f"actor of {process.name}"} | (child.owners if child else set())
            )

    def take_back(self, process):
        one = self.any(process.actors)
        if (
            one
            and process.holder_alive
            and self.attempt(
                f"v[{one.k}] = ray.get(holder.lend.remote({one.k}), timeout=120)[0]", process, [one]
            )
        ):
            process.own[one.k] = one

    def actor_reads(self, process):
        one = self.any(process.actors)
        if one and process.holder_alive:
            self.attempt(
                f"assert ray.get(holder.deep.remote({one.k}), timeout=120) == {one.k}",
                process,
                [one],
            )

    def give(self, process):
        if one := self.any(process.own):
            process.run(f"ray.get(exchange.hold.remote({one.k}, [v[{one.k}]]), timeout=120)")
            self.exchanged[one.k] = one

    def receive(self, process):
        if one := self.any(self.exchanged):
            if self.attempt(
                f"v[{one.k}] = ray.get(exchange.lend.remote({one.k}), timeout=120)[0]",
                process,
                [one],
            ):
                process.own[one.k] = one

    def drop(self, process):
        if one := self.any(process.own):
            process.run(f"del v[{one.k}]")
            del process.own[one.k]

    def actor_drops(self, process):
        one = self.any(process.actors)
        if one and process.holder_alive:
            process.run(f"ray.get(holder.drop.remote({one.k}), timeout=120)")
            del process.actors[one.k]

    def exchange_drops(self, process):
        if one := self.any(self.exchanged):
            process.run(f"ray.get(exchange.drop.remote({one.k}), timeout=120)")
            del self.exchanged[one.k]

    # ---- kills

    def kill_worker(self, process):
        refs = ", ".join(f"v[{c.k}]" for c in self.some(process.own, 3))
        self.killed.add("workers")
        process.run(f"lost = die.remote([{refs}]); ray.wait([lost], timeout=120); del lost")

    def kill_actor(self, process):
        if process.holder_alive:
            self.killed.add(f"actor of {process.name}")
            process.run("os.kill(ray.get(holder.pid.remote(), timeout=120), 9)")
            process.holder_alive, process.actors = False, {}

    def kill_driver(self, process):
        self.killed |= {process.name, f"actor of {process.name}", "workers"}
        process.driver.process.send_signal(signal.SIGKILL)
        with contextlib.suppress(OSError):
            process.driver.close()
        self.processes.remove(process)

    def step(self):
        makes = (self.put, self.task, self.inside, self.lend, self.actor_puts, self.give)
        uses = (self.read, self.take_back, self.actor_reads, self.receive)
        ends = (self.drop, self.actor_drops, self.exchange_drops)
        chosen = self.rng.choices(
            (makes, uses, ends, (self.kill_worker, self.kill_actor)), (45, 30, 20, 4)
        )[0]
        self.rng.choice(chosen)(self.rng.choice(self.processes))

    def end(self):
        """Drops everything in random order; the drivers that are left read in between."""
        if self.rng.random() < 0.5:
            self.kill_driver(self.rng.choice(self.processes))
            self.processes.append(self.process())
        for _ in range(10_000):
            left = [p for p in self.processes if p.own or (p.actors and p.holder_alive)]
            if not left and not self.exchanged:
                break
            process = self.rng.choice(left or self.processes)
            self.rng.choice(
                (
                    self.drop,
                    self.drop,
                    self.actor_drops,
                    self.exchange_drops,
                    self.read,
                    self.actor_reads,
                )
            )(process)
            if self.rng.random() < 0.02:
                self.rng.choice((self.kill_worker, self.kill_actor))(process)
        for process in self.processes:
            assert process.run("v == {}") is True

    def close(self):
        with contextlib.suppress(Exception):
            self.processes[0].run("ray.kill(exchange)")
        for process in self.processes:
            with contextlib.suppress(Exception):
                process.driver.close()


def run(seed, running, drivers=2, steps=40, look=None):
    """Runs the program of a seed. `look()`, if given, is called when everything is dropped and the
    drivers still live; it raises an error when something is left."""
    graphs = Graphs(random.Random(seed), running, drivers)
    try:
        for _ in range(steps):
            graphs.step()
        graphs.end()
        if look:
            look()
    except BaseException:
        print(f"reference graphs: failed with seed {seed}", flush=True)
        raise
    finally:
        graphs.close()


def main():
    from census import Line
    from cluster import cluster
    from waiting import eventually
    from raw_rpc import parse

    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--drivers", type=int, default=3)
    arguments = parser.parse_args()
    with cluster(cpus=4, connect=False) as running:
        line = Line(running.records()[running.head_node]["object_store_socket"])

        def empty():
            count = lambda: parse(line.ask("ObjectStoreService.GetStats")).get(3, 0)
            assert eventually(lambda: count() == 0), f"{count()} objects are left"

        for seed in range(arguments.first, arguments.first + arguments.seeds):
            run(seed, running, arguments.drivers, arguments.steps, empty)
            empty()
    print(
        f"reference graphs: {arguments.seeds} programs from seed {arguments.first} on left nothing"
    )


if __name__ == "__main__":
    main()
