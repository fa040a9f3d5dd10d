"""Random task graphs on real daemons, with arguments near the size of the stores: every result is
right, and nothing stalls. One seed decides the program.

    PYTHONPATH=build/python python3 tests/e2e/stress.py [--seconds N] [--seed N] [--nodes 1,2,3]

For each number of nodes there is a cluster: few CPUs, small stores of different sizes, GPUs that
are only declared, custom resources. Rounds run on it one after the other. A round is several scenes
(stress_scenes.py) whose steps are interleaved: tasks whose arguments nearly fill a store, children
of children, custom resources that tasks hold while they wait for children, actors with arguments,
groups and event loops, functions of one call that return references, generators, cancellations.

The stores do not spill, so a round never asks for what cannot fit: everything that may be held at
the same time, together with the arguments of the largest task, fits into each store (Room in
stress_scenes.py). An ObjectStoreFullError is therefore a fault, as is every other error: tasks are
not retried.

A round has a time limit, made from what its tasks sleep, the bytes that they move, and the speed
that was measured at the start. At the limit, `rayctl status` and `rayctl debug` are printed with
the seed. After each round all resources are free and all stores are empty; at the end of a cluster
no process is left (cluster.py).
"""

import _thread
import argparse
import gc
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import ray
from census import Line
from cluster import cluster
from raw_rpc import parse
from stress_scenes import MB, Node, Round
from stress_tasks import made, read
from waiting import eventually

SETTLE_S = 60


class Watch:
    """Interrupts this program when a round has run out of time, even in a call without a
    time-out."""

    GRACE_S = 10

    def __init__(self, play):
        self.play, self.over = play, threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)

    def look(self):
        while not self.over.wait(1):
            if time.monotonic() > self.play.limit() + self.GRACE_S:
                return _thread.interrupt_main()

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


class Stress:
    """A cluster of `count` nodes, on which rounds run one after the other."""

    def __init__(self, seed, count, running):
        self.seed, self.count, self.running = seed, count, running
        self.nodes = self.nodes_of(seed, count)
        for node in self.nodes[1:]:
            running.join(**node.options())
        running.await_nodes(count, SETTLE_S)
        self.stores = [Line(record["object_store_socket"]) for record in running.records().values()]
        self.rate = self.measured_rate()
        self.bytes = self.rounds = 0
        print(
            f"stress: seed {seed}, {count} nodes ({'; '.join(map(str, self.nodes))}), "
            f"{self.rate / MB:.0f} MB/s",
            flush=True,
        )

    @staticmethod
    def nodes_of(seed, count):
        rng = random.Random(f"{seed} nodes {count}")
        return [Node(rng, index) for index in range(count)]

    def measured_rate(self):
        """Measures how many bytes of arguments per second this machine moves, with their tasks and
        nothing else running."""
        size, there = 20 * MB, read.options(resources={self.nodes[-1].name: 0.01})
        ray.get(there.remote(0, made(1, 1)), timeout=SETTLE_S)
        begin = time.monotonic()
        ray.get(there.remote(0, ray.put(made(1, size))), timeout=SETTLE_S)
        return size / (time.monotonic() - begin)

    def objects(self):
        return [parse(line.ask("ObjectStoreService.GetStats")).get(3, 0) for line in self.stores]

    def settle(self):
        """Waits until nothing is held and the stores are empty, after everything was dropped."""

        def at_rest():
            gc.collect()
            return not any(self.objects())

        assert eventually(at_rest, SETTLE_S), (
            f"objects that are left in the stores: {self.objects()}"
        )
        self.running.await_idle(SETTLE_S)

    def round(self, index):
        rng = random.Random(f"{self.seed} nodes {self.count} round {index}")
        play = Round(rng, self.nodes, self.rate)
        name = f"seed {self.seed}, {self.count} nodes, round {index}"
        try:
            with Watch(play):
                play.play()
            took = time.monotonic() - play.begin
            self.settle()
        except BaseException:
            print(f"stress: failed with {name}: {play.played}, {play.alone():.1f} s alone")
            for command in ("status", "debug", "list tasks"):
                done = self.running.shell.run(*command.split(), f"--address={self.running.address}")
                print(f"---- rayctl {command}\n{done.stdout}{done.stderr}", flush=True)
            raise
        self.bytes += play.bytes
        self.rounds += 1
        print(
            f"stress: {name}: {took:.2f} s ({play.alone():.2f} s alone), "
            f"{play.bytes / MB:.0f} MB: {', '.join(play.played)}",
            flush=True,
        )


def run(seed, count, rounds=0, seconds=0.0, first=0):
    """Plays `rounds` rounds, and further ones until `seconds` have passed."""
    head = Stress.nodes_of(seed, count)[0].options()
    # A busy machine may free late what was dropped. A store that stays full is a fault all
    # the same: its round runs out of time. Nodes that join take the setting from the environment.
    with cluster(connect=False, settings={"create_wait_ms": 60_000}, **head) as running:
        running.shell.env["RAY_create_wait_ms"] = "60000"
        ray.init(address=running.address, log_to_driver=False)
        stress, begin = Stress(seed, count, running), time.monotonic()
        while stress.rounds < rounds or time.monotonic() - begin < seconds:
            stress.round(first + stress.rounds)
        print(
            f"stress: seed {seed}, {count} nodes: {stress.rounds} rounds, "
            f"{stress.bytes / 1e9:.2f} GB in {time.monotonic() - begin:.0f} s",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=600, help="in all")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--nodes", default="1,2,3", help="the sizes of clusters")
    parser.add_argument("--first", type=int, default=0, help="the number of the first round")
    arguments = parser.parse_args()
    counts = [int(count) for count in arguments.nodes.split(",")]
    for count in counts:
        seconds = arguments.seconds / len(counts)
        run(arguments.seed, count, rounds=1, seconds=seconds, first=arguments.first)


if __name__ == "__main__":
    main()
