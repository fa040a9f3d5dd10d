"""The lines of the standard microbenchmark, measured by one driver.

It runs on any package that is importable as `ray`: as `rayctl microbenchmark`, as `python -m
ray._private.ray_perf`, or as a file (bench/lines.py). TESTS_TO_RUN and TESTS_TO_SKIP in the
environment select lines by a part of their names.

Method: warm up for `--warm` seconds, then `--rounds` rounds of at least `--seconds` each. The rate
is calls times multiplier per second, reported as mean and population standard deviation of the
rounds.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import statistics
import sys
import time

import ray

CPUS = multiprocessing.cpu_count()
HALF = max(1, CPUS // 2)


@ray.remote
def small_value():
    return b"ok"


@ray.remote(num_cpus=0)
class Actor:
    def small_value(self):
        return b"ok"

    def small_value_arg(self, x):
        return b"ok"

    def small_value_batch(self, n):
        ray.get([small_value.remote() for _ in range(n)])


@ray.remote
class AsyncActor:
    async def small_value(self):
        return b"ok"

    async def small_value_with_arg(self, x):
        return b"ok"


@ray.remote(num_cpus=0)
class Client:
    def __init__(self, servers):
        self.servers = servers if isinstance(servers, list) else [servers]

    def small_value_batch(self, n):
        results = []
        for s in self.servers:
            results.extend([s.small_value.remote() for _ in range(n)])
        ray.get(results)

    def small_value_batch_arg(self, n):
        x = ray.put(0)
        results = []
        for s in self.servers:
            results.extend([s.small_value_arg.remote(x) for _ in range(n)])
        ray.get(results)


@ray.remote
def put_small():
    for _ in range(100):
        ray.put(0)


@ray.remote
def put_large():
    import numpy as np

    for _ in range(10):
        ray.put(np.zeros(10 * 1024 * 1024, dtype=np.int64))


@ray.remote
def make_refs(n):
    return [ray.put(1) for _ in range(n)]


@ray.remote
def call_actors(actors):
    ray.get([actors[i % len(actors)].small_value.remote() for i in range(5000)])


def cases():
    """Yields (name, multiplier, function without arguments), each right after its set-up."""
    value = ray.put(0)
    yield "single client get calls (Plasma Store)", 1, lambda: ray.get(value)
    yield "single client put calls (Plasma Store)", 1, lambda: ray.put(0)
    yield (
        "multi client put calls (Plasma Store)",
        1000,
        lambda: ray.get([put_small.remote() for _ in range(10)]),
    )

    def gigabytes():
        import numpy as np

        array = np.zeros(100 * 1024 * 1024, dtype=np.int64)
        return lambda: ray.put(array)

    yield "single client put gigabytes", 0.8, gigabytes()
    yield (
        "single client tasks and get batch",
        1,
        lambda: ray.get([small_value.remote() for _ in range(1000)]),
    )
    yield (
        "multi client put gigabytes",
        8.0,
        lambda: ray.get([put_large.remote() for _ in range(10)]),
    )

    refs = make_refs.remote(10000)
    ray.wait([refs])
    yield "single client get object containing 10k refs", 1, lambda: ray.get(refs)
    del refs

    def wait_1k():
        rest = [small_value.remote() for _ in range(1000)]
        fetch = True
        for _ in range(1000):
            _ready, rest = ray.wait(rest, fetch_local=fetch)
            fetch = False

    yield "single client wait 1k refs", 1, wait_1k
    yield "single client tasks sync", 1, lambda: ray.get(small_value.remote())
    yield (
        "single client tasks async",
        1000,
        lambda: ray.get([small_value.remote() for _ in range(1000)]),
    )

    actors = [Actor.remote() for _ in range(4)]
    yield (
        "multi client tasks async",
        40000,
        lambda: ray.get([a.small_value_batch.remote(10000) for a in actors]),
    )
    del actors

    a = Actor.remote()
    yield "1:1 actor calls sync", 1, lambda: ray.get(a.small_value.remote())
    yield (
        "1:1 actor calls async",
        1000,
        lambda: ray.get([a.small_value.remote() for _ in range(1000)]),
    )
    a = Actor.options(max_concurrency=16).remote()
    yield (
        "1:1 actor calls concurrent",
        1000,
        lambda: ray.get([a.small_value.remote() for _ in range(1000)]),
    )

    client = Client.remote([Actor.remote() for _ in range(HALF)])
    yield (
        "1:n actor calls async",
        5000 * HALF,
        lambda: ray.get(client.small_value_batch.remote(5000)),
    )
    servers = [Actor.remote() for _ in range(HALF)]
    yield (
        "n:n actor calls async",
        20000,
        lambda: ray.get([call_actors.remote(servers) for _ in range(4)]),
    )
    clients = [Client.remote(Actor.remote()) for _ in range(HALF)]
    yield (
        "n:n actor calls with arg async",
        1000 * HALF,
        lambda: ray.get([c.small_value_batch_arg.remote(1000) for c in clients]),
    )
    del clients

    b = AsyncActor.remote()
    yield "1:1 async-actor calls sync", 1, lambda: ray.get(b.small_value.remote())
    yield (
        "1:1 async-actor calls async",
        1000,
        lambda: ray.get([b.small_value.remote() for _ in range(1000)]),
    )
    yield (
        "1:1 async-actor calls with args async",
        1000,
        lambda: ray.get([b.small_value_with_arg.remote(i) for i in range(1000)]),
    )
    client = Client.remote([AsyncActor.remote() for _ in range(HALF)])
    yield (
        "1:n async-actor calls async",
        5000 * HALF,
        lambda: ray.get(client.small_value_batch.remote(5000)),
    )
    servers = [AsyncActor.remote() for _ in range(HALF)]
    yield (
        "n:n async-actor calls async",
        20000,
        lambda: ray.get([call_actors.remote(servers) for _ in range(4)]),
    )


def group_cases():
    """Yields the cases of the second session, in the form of cases()."""

    def create_and_remove():
        groups = [ray.util.placement_group([{"custom": 0.001}]) for _ in range(100)]
        for group in groups:
            group.wait(timeout_seconds=30)
        for group in groups:
            ray.util.remove_placement_group(group)

    yield "placement group create/removal", 100, create_and_remove


def measure(function, multiplier, warm, rounds, seconds):
    start = time.perf_counter()
    count = 0
    while time.perf_counter() - start < warm or count == 0:
        function()
        count += 1
    step = count // 10 + 1
    rates = []
    for _ in range(rounds):
        start = time.perf_counter()
        count = 0
        while time.perf_counter() - start < seconds:
            for _ in range(step):
                function()
            count += step
        rates.append(multiplier * count / (time.perf_counter() - start))
    return statistics.mean(rates), statistics.pstdev(rates)


def wanted(name):
    run, skip = os.environ.get("TESTS_TO_RUN"), os.environ.get("TESTS_TO_SKIP")
    return (not run or run in name) and not (skip and skip in name)


def measure_all(chosen, rest, warm, rounds, seconds):
    """Measures in two sessions of its own; returns [(name, mean, std)].

    A line that `chosen(name)` leaves out is None.
    """
    how = (chosen, rest, warm, rounds, seconds)
    results = measure_session(cases(), {}, *how)
    groups = list(group_cases())
    if not any(chosen(name) and wanted(name) for name, *_ in groups):
        return [*results, *(None for _ in groups)]
    return [*results, *measure_session(groups, {"resources": {"custom": 100}}, *how)]


def measure_session(cases, cluster, chosen, rest, warm, rounds, seconds):
    results = []
    ray.init(**cluster)
    try:
        for name, multiplier, function in cases:
            if not (chosen(name) and wanted(name)):
                results.append(None)
                continue
            time.sleep(rest)
            mean, std = measure(function, multiplier, warm, rounds, seconds)
            results.append((name, mean, std))
            print(f"{name} per second {mean:.2f} +- {std:.2f}", flush=True)
    finally:
        ray.shutdown()
    return results


def main(results=None):
    """Measures all lines as the standard benchmark does, with ten seconds of rest before each."""
    print("Tip: TESTS_TO_RUN=TEXT measures only the lines whose names contain TEXT.")
    return [*(results or []), *measure_all(lambda name: True, rest=10, warm=1, rounds=4, seconds=2)]


def command():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="measure lines whose name contains this")
    parser.add_argument("--exact", action="store_true", help="--only is the whole name")
    parser.add_argument("--rest", type=float, default=1.0, help="pause before each line, seconds")
    parser.add_argument("--warm", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--out", default="", help="JSON file of {name: [mean, std]}")
    args = parser.parse_args()
    # A path that cannot be written is noticed before minutes of measuring.
    try:
        out = open(args.out, "w") if args.out else contextlib.nullcontext()
    except OSError as error:
        sys.exit(f"Error: cannot write {args.out}: {error.strerror}")
    with out as file:
        measured = measure_all(
            lambda name: name == args.only if args.exact else args.only in name,
            args.rest,
            args.warm,
            args.rounds,
            args.seconds,
        )
        results = {name: [mean, std] for name, mean, std in filter(None, measured)}
        if file:
            json.dump(results, file, indent=1)
    if not results:
        sys.exit(f"no line of the benchmark matches {args.only!r}")


if __name__ == "__main__":
    command()
