"""Nothing is left and nothing grows: many sessions in one process, and an hour of coming and going
on one cluster.

    PYTHONPATH=build/python python3 tests/e2e/hygiene.py [cycles|churn] [--cycles N] [--seconds N]
        [--bytes N] [--cores F] [--seed N]

cycles: ray.init() and shutdown, each with a task, an actor and a large put. Afterwards there is no
process, descriptor, thread, shared memory object or socket file more than before, and this
process's memory is within 5% of what it was after the first 50. What stays is each session's
directory with its logs and history (docs/launching.md).

churn: tasks, actors, names, cancellations, kills, drivers (churn.py) on a cluster with a store of 1
GB, at most `--cores` of CPU time per second. After a tenth of the time (at most five minutes) and
at the end everything is dropped and settles: then the store is empty, the head's tables are back,
and memory, descriptors, threads and processes are within 5% of the first such moment; a table says
how it was between. Bounded data that grow by design have small bounds here, reached before the
first moment: dead actors (dead_actors_kept), finished jobs (finished_jobs_kept), task history
(task_events_max_bytes, on disk).
"""

import argparse
import contextlib
import ctypes
import gc
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
if __name__ == "__main__":
    # Thousands of tasks fail here on purpose, and nobody looks at their errors.
    os.environ["RAY_IGNORE_UNHANDLED_ERRORS"] = "1"

import ray
from census import Census, cpu_seconds, leftovers, machine, status
from churn import Churn
from cluster import cluster
from waiting import eventually

TOLERANCE = 0.05
WARM_CYCLES = 50
CPUS = 2
SETTLE_S = 60
KEPT = {"dead_actors_kept": 20, "finished_jobs_kept": 5, "task_events_max_bytes": 1_000_000}
SESSION_FILES = {
    "logs",
    "sockets",
    "head.sqlite",
    "history.sqlite",
    "prom_metrics_service_discovery.json",
}


def settled_memory():
    gc.collect()
    return status(os.getpid())


# ---- sessions


@ray.remote
def add_one(x):
    return x + 1


@ray.remote
class Holder:
    def __init__(self, value):
        self.value = value

    def size(self):
        return len(self.value)


def one_session(number):
    ray.init(num_cpus=1, object_store_memory=80_000_000)
    ref = ray.put(b"x" * 200_000)
    holder = Holder.remote(ref)
    late = add_one.remote(number)
    assert (
        ray.get(add_one.remote(number)) == number + 1 and ray.get(holder.size.remote()) == 200_000
    )
    ray.shutdown(wait_for_processes=True)
    # References may outlive their session.
    return late, holder


def cycles(count, tolerance=TOLERANCE):
    # The path must be short, because Unix sockets are made below it.
    root = tempfile.mkdtemp(prefix="rhy-", dir="/tmp")
    saved = os.environ.get("RAY_TMPDIR")
    os.environ["RAY_TMPDIR"] = root
    os.environ.pop("RAY_ADDRESS", None)
    begin = time.monotonic()
    try:
        before, first = machine(root), None
        for number in range(count):
            one_session(number)
            if number == max(1, min(WARM_CYCLES, count // 2)) - 1:
                first = settled_memory()
        end = settled_memory()
        left = eventually(lambda: not leftovers(root, before)) or leftovers(root, before)
        sessions = list(pathlib.Path(root).glob("session_2*"))
        extra = {path.name for session in sessions for path in session.iterdir()} - SESSION_FILES
        print(
            f"hygiene: {count} sessions in {time.monotonic() - begin:.1f} s; this process: "
            + ", ".join(
                f"{name} {first[name]} -> {end[name]}" for name in ("rss", "own", "fds", "threads")
            ),
            flush=True,
        )
        assert left is True, f"left behind: {left}"
        assert len(sessions) == count and not extra, extra
        assert (end["fds"], end["threads"]) == (first["fds"], first["threads"])
        assert end["rss"] <= first["rss"] * (1 + tolerance), (first, end)
    finally:
        ray.shutdown()
        os.environ.pop("RAY_TMPDIR") if saved is None else os.environ.__setitem__(
            "RAY_TMPDIR", saved
        )
        shutil.rmtree(root, ignore_errors=True)


# ---- churn


class Watch:
    """Samples a cluster's processes: at the start, the highest since, and at the end."""

    def __init__(self, census):
        self.census, self.start, self.peak = census, None, {}

    def look(self):
        for name, sample in self.census.sample().items():
            peak = self.peak.setdefault(name, dict(sample))
            for key, value in sample.items():
                peak[key] = max(peak.get(key, 0), value)

    def begin(self):
        self.start, self.peak = self.census.sample(), {}
        self.look()

    def table(self, end):
        yield f"{'process':<18}{'':<11}{'start':>10}{'peak':>10}{'end':>10}{'change':>9}"
        for name, start in self.start.items():
            for key, first in start.items():
                last = end[name][key]
                yield f"{name:<18}{key:<11}{first:>10}{self.peak[name][key]:>10}{last:>10}{(last - first) / first if first else 0:>9.1%}"

    def grown(self, end, tolerance):
        """Returns the figures that have grown. `arena` and `pss` may grow, since touched shared
        memory stays mapped up to the store's size. Descriptors may differ by one for each CPU,
        because a process may have a connection to each idle worker or not."""
        return [
            f"{name}: {key} {first} -> {end[name][key]}"
            for name, start in self.start.items()
            for key, first in start.items()
            if key not in ("own", "arena", "pss")
            and end[name][key] > first * (1 + tolerance) + (CPUS if key == "fds" else 0)
        ]


@ray.remote(num_cpus=1)
def used():
    import numpy

    time.sleep(0.5)
    return len(numpy.arange(3))


def settle(census, churn):
    """Drops everything, waits until the cluster is at rest, and returns the head's tables. Fails
    with a list of what is left if the cluster does not come to rest."""
    churn.forget()

    def rest():
        gc.collect()
        free, total = ray.available_resources(), ray.cluster_resources()
        _, workers = census.workers()
        left = {
            name: amount - free.get(name, 0)
            for name, amount in total.items()
            if free.get(name, 0) != amount
        }
        if census.store() != {"used": 0, "objects": 0, "pinned": 0}:
            left["store"] = census.store()
        if len(workers) != CPUS:
            left["workers"] = len(workers)
        if census.tables()["actors"]:
            left["actors"] = census.tables()["actors"]
        return left

    eventually(lambda: not rest(), SETTLE_S, every=0.5)
    # Each worker loads the modules that the tasks need.
    ray.get([used.remote() for _ in range(CPUS)])
    eventually(lambda: not rest(), SETTLE_S, every=0.5)
    left = rest()
    assert not left, f"after everything was dropped there is still {left}"
    return census.tables()


class Pace:
    """Keeps the CPU time of the cluster and this process below a share of one core."""

    def __init__(self, census, cores):
        self.census, self.cores = census, cores
        self.begin, self.spent = time.monotonic(), self.used()

    def used(self):
        return (
            sum(map(cpu_seconds, self.census.daemons.values()))
            + cpu_seconds(os.getpid())
            + sum(map(cpu_seconds, sum(self.census.workers(), [])))
        )

    def rest(self):
        if self.cores:
            due = self.begin + (self.used() - self.spent) / self.cores
            time.sleep(max(0, min(60, due - time.monotonic())))


@contextlib.contextmanager
def freed_memory_returned():
    """Lets the arrays of this process, and of the workers of clusters that it starts, go back to
    the system when they are freed. By default the C library keeps the room of the largest one up to
    32 MB, so that a worker looks grown when it has had a large array for the first time."""
    M_MMAP_THRESHOLD, size = -3, 1 << 17
    assert ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, size) == 1
    with mock.patch.dict(os.environ, MALLOC_MMAP_THRESHOLD_=str(size)):
        yield


def churn(seconds, size, cores=0.0, seed=0, tolerance=TOLERANCE):
    print(
        f"hygiene: {seconds} s of churn, {size / 1e9:g} GB through the store, seed {seed}",
        flush=True,
    )
    with (
        freed_memory_returned(),
        cluster(
            cpus=CPUS, connect=False, object_store_memory=1_000_000_000, settings=KEPT
        ) as running,
    ):
        ray.init(address=running.address, log_to_driver=False, namespace="churn")
        census = Census(running)
        watch, load, pace = (
            Watch(census),
            Churn(random.Random(seed), running.shell.env, running.address),
            Pace(census, cores),
        )
        begin, warm, rounds, drivers = (
            time.monotonic(),
            min(300, seconds / 3 if seconds < 600 else seconds / 10),
            0,
            0,
        )
        first = None
        while (now := time.monotonic() - begin) < seconds or load.bytes < size:
            if first is None and now > warm:
                first = settle(census, load)
                watch.begin()
                print(f"hygiene: warm after {now:.0f} s and {rounds} rounds: {first}", flush=True)
            load.round()
            load.large(max(0, int(size * min(1, now / seconds)) - load.bytes))
            if drivers < now / (5 if seconds < 600 else 15):
                load.driver()
                drivers += 1
            rounds += 1
            watch.look()
            pace.rest()
        last = settle(census, load)
        end = census.sample()
        print(
            f"hygiene: {rounds} rounds, {load.bytes / 1e9:.2f} GB, {load.done} in {time.monotonic() - begin:.0f} s, {pace.used() - pace.spent:.0f} s of CPU time"
        )
        print("\n".join(watch.table(end)))
        print(f"the head's tables: {first} -> {last}", flush=True)
        assert (
            last["dead actors"] <= KEPT["dead_actors_kept"]
            and last["finished jobs"] <= KEPT["finished_jobs_kept"]
            and last["keys"] == 0
            and last["jobs"] == 1
        ), last
        assert last["functions"] <= first["functions"] + 5, (first, last)
        grown = watch.grown(end, tolerance)
        assert not grown, "\n".join(["grown:", *grown])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument(
        "what", nargs="?", choices=("cycles", "churn"), help="one of the two; both without it"
    )
    parser.add_argument("--cycles", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument(
        "--bytes", type=int, default=10_000_000_000, help="through the store, in all"
    )
    parser.add_argument(
        "--cores", type=float, default=0, help="CPU seconds per second, at most (0: no limit)"
    )
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    arguments = parser.parse_args()
    if arguments.what != "churn":
        cycles(arguments.cycles)
    if arguments.what != "cycles":
        churn(arguments.seconds, arguments.bytes, arguments.cores, arguments.seed)
