"""Measures what recording for the history costs a task.

Two kinds of workers in one cluster take turns; one of them does not record
(RAY_task_events_report_interval_ms=0 in its runtime environment).

The CPU time for each task is compared: that of the driver and all workers in many short turns,
which differ less from their neighbours than the machine does from minute to minute, and that of
the daemons, which get the records later, in a few long ones. It prints the median and its
uncertainty (for the short turns 1.57 interquartile ranges, divided by the root of their number)
and writes (--out) {name: percent}.
"""

import argparse
import json
import os
import pathlib
import statistics
import time
import uuid

# This variable is in the environment of all processes that this program starts, so that it finds
# them.
MARK = f"RT_RECORDING_COST={uuid.uuid4().hex}"
# The two kinds of runtime environment differ in nothing but recording.
KINDS = {
    True: {"env_vars": {"RT_RECORDS": "1"}},
    False: {"env_vars": {"RAY_task_events_report_interval_ms": "0"}},
}
LONG_TURNS = 5
DAEMONS = ("ray-head", "ray-node-manager", "ray-object-store")


def processes():
    """Returns {True: the daemons, False: the workers} of this cluster."""
    found = {True: [], False: []}
    for process in pathlib.Path("/proc").iterdir():
        try:
            if (
                process.name.isdigit()
                and int(process.name) != os.getpid()
                and MARK.encode() in (process / "environ").read_bytes().split(b"\0")
            ):
                program = pathlib.Path(
                    os.fsdecode((process / "cmdline").read_bytes().split(b"\0")[0])
                ).name
                found[program in DAEMONS].append(process)
        except OSError:
            # The process has ended, or belongs to another user.
            pass
    return found


def cpu_seconds(of):
    total = 0
    for process in of:
        try:
            total += sum(
                int((thread / "schedstat").read_text().split()[0])
                for thread in (process / "task").iterdir()
            )
        except OSError:
            # The process has ended, which makes this turn an outlier.
            pass
    return total / 1e9


def lines(ray):
    """Returns {name: {recording: function that runs some tasks and returns their number}}."""

    # Two of four CPUs, so that the pool has room for two workers of each kind.
    @ray.remote(num_cpus=2)
    def small():
        return b"ok"

    @ray.remote(num_cpus=0)
    class Actor:
        def small(self):
            return b"ok"

    def burst(call):
        ray.get([call() for _ in range(1000)])
        return 1000

    def single(call):
        for _ in range(50):
            ray.get(call())
        return 50

    tasks = {recording: small.options(runtime_env=kind).remote for recording, kind in KINDS.items()}
    actors = {
        recording: Actor.options(runtime_env=kind).remote() for recording, kind in KINDS.items()
    }
    return {
        "tasks async": {
            recording: lambda call=call: burst(call) for recording, call in tasks.items()
        },
        "tasks sync": {
            recording: lambda call=call: single(call) for recording, call in tasks.items()
        },
        "actor calls async": {
            recording: lambda actor=actor: burst(actor.small.remote)
            for recording, actor in actors.items()
        },
    }


def turn(run, seconds):
    """Returns (CPU seconds of the driver and the workers, number of tasks)."""
    # This first call makes leases, and caches for this kind of task.
    run()
    workers = processes()[False]
    before = cpu_seconds(workers)
    own = time.process_time()
    tasks, until = 0, time.perf_counter() + seconds
    while time.perf_counter() < until:
        tasks += run()
    own = time.process_time() - own
    return own + cpu_seconds(workers) - before, tasks


def in_turns(turns):
    return [(True, False) if number % 2 else (False, True) for number in range(turns)]


def daemons_cost(run):
    """Returns CPU seconds of the daemons for each task, until they have got the last record."""
    daemons = processes()[True]
    before = cpu_seconds(daemons)
    _, tasks = turn(run, 1.5)
    time.sleep(0.6)
    return (cpu_seconds(daemons) - before) / tasks


def measure(turns, seconds):
    """Returns {name: (percent, uncertainty in percent)}."""
    import ray

    key, _, value = MARK.partition("=")
    os.environ[key] = value
    ray.init(num_cpus=4, log_to_driver=False)
    found = {}
    for name, runs in lines(ray).items():
        for run in runs.values():
            turn(run, 0.3)
        extra, costs = [], []
        for recording in in_turns(turns):
            took = {kind: turn(runs[kind], seconds) for kind in recording}
            cost = {kind: cpu / tasks for kind, (cpu, tasks) in took.items()}
            extra.append(cost[True] / cost[False] - 1)
            costs.append(cost[False])
        of_daemons = {True: [], False: []}
        for recording in in_turns(LONG_TURNS):
            for kind in recording:
                of_daemons[kind].append(daemons_cost(runs[kind]))
        later = (
            statistics.median(of_daemons[True]) - statistics.median(of_daemons[False])
        ) / statistics.median(costs)
        low, median, high = statistics.quantiles(extra, n=4)
        found[f"recording_cost_percent: {name}"] = (
            100 * (median + later),
            157 * (high - low) / turns**0.5,
        )
    ray.shutdown()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=150)
    parser.add_argument("--seconds", type=float, default=0.12)
    parser.add_argument("--out")
    options = parser.parse_args()
    found = measure(options.turns, options.seconds)
    for name, (percent, error) in found.items():
        print(f"{name:46s} {percent:6.1f} % +- {error:.1f}", flush=True)
    if options.out:
        with open(options.out, "w") as file:
            json.dump({name: percent for name, (percent, _) in found.items()}, file)


if __name__ == "__main__":
    main()
