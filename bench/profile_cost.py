"""Measures what a profile at 100 Hz costs the program that is sampled.

The same work runs with and without a profile, in turns, in one process. Its time is taken from the
clock of the thread that does it and from the wall clock; the sampler's own time from the clock of
the process. The ratio of wall time is that of the lower quartiles of short pieces of work, each
long enough to be sampled several times: other load of the machine slows down pieces, but leaves a
quarter of them alone. Prints and writes (--out) {name: value}.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import time

import ray

PIECE_S = 0.1
RAYCTL = pathlib.Path(__file__).resolve().parents[1] / "build" / "bin" / "rayctl"


@ray.remote
class Program:
    """Runs ordinary Python: a recursion of some depth, dictionaries, sorting."""

    def pid(self):
        return os.getpid()

    def calibrate(self, seconds):
        count, begin = 0, time.perf_counter()
        while time.perf_counter() - begin < seconds:
            self.unit(20)
            count += 1
        return count

    def unit(self, depth):
        if depth:
            return self.unit(depth - 1)
        table = {i: str(i) for i in range(300)}
        return sum(len(value) for value in sorted(table.values()))

    def work(self, pieces, count):
        """Does `pieces` times `count` units of work.

        Returns (seconds by the wall clock, the thread's and the process's clock; seconds of each
        piece by the wall clock).
        """
        wall, thread, process = time.perf_counter(), time.thread_time(), time.process_time()
        ends = [wall]
        for _ in range(pieces):
            for _ in range(count):
                self.unit(20)
            ends.append(time.perf_counter())
        took = [
            clock() - begin
            for clock, begin in (
                (time.perf_counter, wall),
                (time.thread_time, thread),
                (time.process_time, process),
            )
        ]
        return took, [end - begin for begin, end in zip(ends, ends[1:])]


def sampled(pid):
    return any(
        (task / "comm").read_text() == "ray-profile\n"
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
    )


def await_state(pid, wanted):
    while sampled(pid) != wanted:
        time.sleep(0.02)


def measure(options):
    ray.init(num_cpus=2, log_to_driver=False)
    program = Program.remote()
    pid = ray.get(program.pid.remote())
    pieces = max(1, round(options.seconds / PIECE_S))
    count = max(1, ray.get(program.calibrate.remote(options.seconds)) // pieces)
    address = ray.get_runtime_context().gcs_address
    ratios, shares, walls = [], [], {True: [], False: []}
    for _ in range(options.turns):
        without, alone = ray.get(program.work.remote(pieces, count))
        command = [
            RAYCTL,
            "profile",
            f"--address={address}",
            f"--duration={int(options.seconds * 3) + 2}",
            f"--rate={options.rate}",
            "--output=/dev/null",
            str(pid),
        ]
        with subprocess.Popen(
            [*map(str, command), *(["--no-native"] if options.no_native else [])],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ):
            await_state(pid, True)
            with_it, watched = ray.get(program.work.remote(pieces, count))
            if not sampled(pid):
                raise SystemExit("the profile ended before the work: give more --seconds")
        await_state(pid, False)
        walls[False] += alone
        walls[True] += watched
        ratios.append(with_it[1] / without[1])
        shares.append((with_it[2] - with_it[1] - (without[2] - without[1])) / with_it[0])
    ray.shutdown()
    quartile = {on: statistics.quantiles(pieces, n=4)[0] for on, pieces in walls.items()}
    return {
        "profile_cost_wall_percent": 100 * (quartile[True] / quartile[False] - 1),
        "profile_cost_thread_percent": 100 * (statistics.median(ratios) - 1),
        "profile_sampler_cpu_percent": 100 * statistics.median(shares),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rate", type=int, default=100)
    parser.add_argument("--no-native", action="store_true")
    parser.add_argument("--out")
    options = parser.parse_args()
    values = measure(options)
    for name, value in values.items():
        print(f"{name:32} {value:8.2f}")
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps(values))


if __name__ == "__main__":
    main()
