"""Placement groups on real daemons while nodes and heads are killed: in the end nothing is held and
nothing that could run still waits.

    PYTHONPATH=build/python python3 tests/e2e/group_faults.py [--rounds N] [--seed N]

A head of two CPUs and three nodes of two. Each round makes groups of all strategies, with and
without names, and runs tasks and an actor in them. Something is killed at a moment of the round
that the seed decides: while groups are created, used or removed. A node-manager is killed and
another node joins in its place, or the head is killed and started again, or both. After each round
every group that fits must have become ready, every task must have answered, and once the groups are
removed everything that is offered is free. At the end no process may be left (cluster.py).
"""

import argparse
import contextlib
import random
import sys
import os
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import ray
from cluster import cluster
from ray.util import placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy as InGroup
from waiting import until

NODES, CPUS = 3, 2
ROUND_S = 60
PHASES = ("create", "use", "remove")


@ray.remote(max_retries=-1)
def square(x):
    return x * x


@ray.remote(max_retries=-1)
def family(n):
    return sum(ray.get([square.remote(i) for i in range(n)]))


@ray.remote(max_restarts=-1, max_task_retries=-1)
class Adder:
    def add(self, x):
        return x + 1


def bundles_of(rng):
    """Returns the strategy and bundles of a group that fits on any two nodes."""
    strategy = rng.choice(("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"))
    count = {"STRICT_PACK": 2, "STRICT_SPREAD": 2}.get(strategy, rng.randrange(1, 4))
    cpus = 1 if strategy != "STRICT_SPREAD" else rng.choice((1, 2))
    return strategy, [{"CPU": cpus}] * count


class Faults:
    def __init__(self, running, rng):
        self.cluster, self.rng = running, rng
        self.nodes = [running.join(cpus=CPUS) for _ in range(NODES)]
        self.too_large = None  # The group of this round that fits on no node.
        self.kills = {"nodes": 0, "heads": 0}

    def replace_node(self):
        victim = self.nodes.pop(self.rng.randrange(len(self.nodes)))
        self.cluster.kill(victim, "ray-node-manager")
        self.kills["nodes"] += 1
        self.nodes.append(self.cluster.join(cpus=CPUS))

    def restart_head(self):
        self.cluster.kill(self.cluster.head_node, "ray-head")
        self.kills["heads"] += 1
        self.cluster.shell.ok("start", "--head", f"--port={self.cluster.port}")

    def faults(self):
        """Chooses the kills of one round, in order."""
        return self.rng.choice(
            ([self.replace_node], [self.restart_head], [self.replace_node, self.restart_head])
        )

    @contextlib.contextmanager
    def breaking(self, now):
        """Kills beside the block, and waits until everything has been replaced; does nothing unless
        `now`."""
        if not now:
            yield
            return
        failed, delay, kills = [], self.rng.uniform(0, 0.05), self.faults()
        over = threading.Event()

        def kill():
            try:
                over.wait(delay)
                for step in kills:
                    step()
            except BaseException as error:  # The main thread raises it.
                failed.append(error)

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            yield
        finally:
            over.set()
            killer.join()
        if failed:
            raise failed[0]

    def round(self, number):
        phase = self.rng.choice(PHASES)
        with self.breaking(phase == "create"):
            groups = self.create(number)
        with self.breaking(phase == "use"):
            for group in groups:
                self.use(group)
        with self.breaking(phase == "remove"):
            for group in (*groups, self.too_large):
                remove_placement_group(group)
        self.await_nothing_held()

    def create(self, number):
        """Creates a group of any kind, a small one that fits beside it, and one that never fits."""
        strategy, bundles = bundles_of(self.rng)
        name = f"round {number}" if self.rng.random() < 0.5 else ""
        group = placement_group(bundles, strategy=strategy, name=name)
        self.too_large = placement_group([{"CPU": CPUS + 1}])
        return group, placement_group([{"CPU": 1}])

    def use(self, group):
        assert group.wait(ROUND_S), placement_group_table(group)
        anywhere = InGroup(group, placement_group_capture_child_tasks=True)
        answers = {
            square.options(scheduling_strategy=InGroup(group, index)).remote(index): index**2
            for index in range(group.bundle_count)
        }
        answers[family.options(scheduling_strategy=anywhere).remote(4)] = 14
        adder = Adder.options(scheduling_strategy=InGroup(group, 0)).remote()
        answers[adder.add.remote(6)] = 7
        for ref, answer in answers.items():
            assert ray.get(ref, timeout=ROUND_S) == answer

    def await_nothing_held(self):
        self.cluster.await_nodes(NODES + 1, ROUND_S)
        self.cluster.await_idle(ROUND_S)
        until(
            placement_group_table,
            lambda table: all(entry["state"] == "REMOVED" for entry in table.values()),
            ROUND_S,
        )


def run(rounds, seed):
    print(f"group faults: {rounds} rounds, seed {seed}", flush=True)
    rng = random.Random(seed)
    begin = time.monotonic()
    with cluster(cpus=CPUS) as running:
        faults = Faults(running, rng)
        running.await_nodes(NODES + 1)
        for number in range(rounds):
            try:
                faults.round(number)
            except BaseException:
                print(f"group faults: round {number} of seed {seed} failed", flush=True)
                running.show(["status"], ["list", "placement-groups"], ["debug"])
                raise
        print(
            f"group faults: killed {faults.kills['nodes']} node-managers and "
            f"{faults.kills['heads']} heads; {time.monotonic() - begin:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    arguments = parser.parse_args()
    run(arguments.rounds, arguments.seed)
