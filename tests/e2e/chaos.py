"""Random kills of workers and node-managers under load: no submitted task that has retries left is
lost, every result is right.

    PYTHONPATH=build/python python3 tests/e2e/chaos.py [--rounds N] [--seed N]

RAY_CHAOS_ROUNDS sets the default of --rounds, 100.

A head of two CPUs and two nodes of two run many short and some long tasks: plain ones, some that
read others' results, and some that wait for children of their own. Every round kills a worker or
two wherever they are, every few rounds a whole node loses its node-manager and another joins in its
place. One printed seed decides what is killed and when (not how the machine schedules it). At the
end everything that is offered must be free again and no process may be left.
"""

import argparse
import os
import random
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import ray
from cluster import cluster
from waiting import eventually

NODE_KILLS = 0.2  # This share of the rounds kills a node.
SHORT, LONG, NESTED, CHAINED = 150, 3, 6, 10
RETRIES = -1


@ray.remote(max_retries=RETRIES)
def square(x):
    return x * x, os.getpid()


@ray.remote(max_retries=RETRIES, scheduling_strategy="SPREAD")
def slow(x):
    time.sleep(0.2)
    return x + 1, os.getpid()


@ray.remote(max_retries=RETRIES)
def after(pair, x):
    return pair[0] + x, os.getpid()


@ray.remote(max_retries=RETRIES)
def family(n):
    return sum(value for value, _ in ray.get([square.remote(i) for i in range(n)])), os.getpid()


def submit(rng):
    """Submits one round's tasks and returns them with the answers that they must give."""
    expected = {}
    for _ in range(SHORT):
        x = rng.randrange(1000)
        expected[square.remote(x)] = x * x
    for _ in range(LONG):
        x = rng.randrange(1000)
        expected[slow.remote(x)] = x + 1
    for _ in range(NESTED):
        n = rng.randrange(1, 12)
        expected[family.remote(n)] = sum(i * i for i in range(n))
    for _ in range(CHAINED):
        x, y = rng.randrange(1000), rng.randrange(1000)
        expected[after.remote(square.remote(x), y)] = x * x + y
    return expected


class Chaos:
    def __init__(self, running, rng):
        self.cluster, self.rng = running, rng
        self.nodes = [running.join(cpus=2) for _ in range(2)]
        self.workers = set()  # pids of the workers that have answered
        self.kills = {"workers": 0, "nodes": 0}

    def kill_workers(self):
        alive = sorted(self.workers & set(self.cluster.processes()))
        for pid in self.rng.sample(alive, min(len(alive), self.rng.choice((1, 1, 2)))):
            try:
                os.kill(pid, signal.SIGKILL)
                self.kills["workers"] += 1
            except ProcessLookupError:
                pass
        self.workers &= set(alive)

    def replace_node(self):
        victim = self.nodes.pop(self.rng.randrange(len(self.nodes)))
        self.cluster.kill(victim, "ray-node-manager")
        self.kills["nodes"] += 1
        self.nodes.append(self.cluster.join(cpus=2))

    def round(self):
        expected = submit(self.rng)
        delays = sorted(self.rng.uniform(0, 0.2) for _ in range(2))
        node_dies = self.rng.random() < NODE_KILLS
        failed = []

        def kill():
            try:
                time.sleep(delays[0])
                self.kill_workers()
                time.sleep(delays[1] - delays[0])
                if node_dies:
                    self.replace_node()
            except Exception as error:  # The main thread raises it.
                failed.append(error)

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            for ref, answer in expected.items():
                value, pid = ray.get(ref, timeout=60)
                assert value == answer, f"{value} instead of {answer}"
                self.workers.add(pid)
        finally:
            killer.join()
        if failed:
            raise failed[0]


def run(rounds, seed):
    print(f"chaos: {rounds} rounds, seed {seed}", flush=True)
    rng = random.Random(seed)
    begin = time.monotonic()
    with cluster(cpus=2) as running:
        chaos = Chaos(running, rng)
        running.await_nodes(3)
        for number in range(rounds):
            try:
                chaos.round()
            except BaseException:
                print(
                    f"chaos: failed in round {number} of seed {seed} after {chaos.kills}",
                    flush=True,
                )
                raise
        running.await_nodes(3)
        running.await_idle(20)
        assert eventually(lambda: ray.cluster_resources()["CPU"] == 6)
        total = rounds * (SHORT + LONG + NESTED + 2 * CHAINED)
        print(
            f"chaos: {total} tasks right; killed {chaos.kills['workers']} workers and {chaos.kills['nodes']} node-managers; {time.monotonic() - begin:.1f} s",
            flush=True,
        )
        assert chaos.kills["workers"] >= rounds // 2


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=int(os.environ.get("RAY_CHAOS_ROUNDS", 100)))
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    arguments = parser.parse_args()
    run(arguments.rounds, arguments.seed)
