"""What recording tasks for the history costs a task: the same lines with it and without (RAY_task_events_report_interval_ms=0), in turns, in one run.

Each turn is a cluster of its own. What is compared is the CPU time of all its processes - driver, workers, daemons - for each task, in the cheapest quarter of the turns with and without:
what else runs on the machine makes turns dearer, never cheaper. Prints and writes (--out) {name: percent}.
"""

import argparse
import json
import os
import subprocess
import sys
import uuid

CHILD = r"""
import json, os, pathlib, sys, time
import ray

MARK = b"RT_RECORDING_COST=" + os.environ["RT_RECORDING_COST"].encode()

def cpu_seconds():
    total = 0
    for process in pathlib.Path("/proc").iterdir():
        try:
            if process.name.isdigit() and MARK in (process / "environ").read_bytes().split(b"\0"):
                total += sum(int((thread / "schedstat").read_text().split()[0]) for thread in (process / "task").iterdir())
        except OSError:
            pass        # it has ended, or is not ours
    return total / 1e9

seconds = float(sys.argv[1])
ray.init(num_cpus=2, log_to_driver=False)

@ray.remote
def small():
    return b"ok"

@ray.remote(num_cpus=0)
class Actor:
    def small(self):
        return b"ok"

actor = Actor.remote()
lines = {
    "tasks async": (1000, lambda: ray.get([small.remote() for _ in range(1000)])),
    "tasks sync": (100, lambda: [ray.get(small.remote()) for _ in range(100)]),
    "actor calls async": (1000, lambda: ray.get([actor.small.remote() for _ in range(1000)])),
}
rates = {}
for name, (count, once) in lines.items():
    end = time.perf_counter() + seconds / 4
    while time.perf_counter() < end:
        once()
    calls, begin, used = 0, time.perf_counter(), cpu_seconds()
    while time.perf_counter() - begin < seconds:
        once()
        calls += count
    time.sleep(0.5)     # what was recorded is on its way
    rates[name] = calls / (cpu_seconds() - used)
ray.shutdown()
print(json.dumps(rates))
"""


def turn(recording, seconds):
    env = {key: value for key, value in os.environ.items() if key != "RAY_task_events_report_interval_ms"}
    env["RT_RECORDING_COST"] = uuid.uuid4().hex
    if not recording:
        env["RAY_task_events_report_interval_ms"] = "0"
    return json.loads(subprocess.run([sys.executable, "-c", CHILD, str(seconds)], env=env, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def measure(turns, seconds):
    costs = {}
    for number in range(turns):
        for recording in ((True, False) if number % 2 else (False, True)):
            for name, rate in turn(recording, seconds).items():
                costs.setdefault(name, {True: [], False: []})[recording].append(1 / rate)
    cheap = {name: {recording: sorted(of)[len(of) // 4] for recording, of in both.items()} for name, both in costs.items()}
    return {f"recording_cost_percent: {name}": 100 * (both[True] / both[False] - 1) for name, both in cheap.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--out")
    options = parser.parse_args()
    found = measure(options.turns, options.seconds)
    for name, percent in found.items():
        print(f"{name:46s} {percent:6.1f} %", flush=True)
    if options.out:
        with open(options.out, "w") as file:
            json.dump(found, file)


if __name__ == "__main__":
    main()
