"""Eight trainers are much slower than one, on idle processors; docs/profiling.md shows why.

python3 docs/examples/slow_behind_a_lock.py         # prints their speeds until Ctrl-C
rayctl profile Trainer --duration 3                 # meanwhile, in another terminal
"""

import ctypes
import os
import subprocess
import tempfile
import time

import ray

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "slow_behind_a_lock.c")


@ray.remote(num_cpus=0)
class Trainer:
    def __init__(self, library, lock):
        self.library = ctypes.CDLL(library)
        self.library.start(lock.encode())

    def train(self, seconds):
        """The steps per second during `seconds` seconds."""
        begun, steps = time.monotonic(), 0
        while time.monotonic() - begun < seconds:
            self.library.step()
            steps += 1
        return steps / (time.monotonic() - begun)


def main():
    with tempfile.TemporaryDirectory() as directory:
        library, lock = os.path.join(directory, "operators.so"), os.path.join(directory, "lock")
        subprocess.run(
            ["cc", "-O1", "-g", "-shared", "-fPIC", "-pthread", "-o", library, SOURCE], check=True
        )
        ray.init()
        trainers = [Trainer.remote(library, lock) for _ in range(8)]
        print(f"1 process: {ray.get(trainers[0].train.remote(2)):.0f} steps a second", flush=True)
        while True:
            rates = ray.get([trainer.train.remote(5) for trainer in trainers])
            print(
                f"8 processes: {min(rates):.1f} to {max(rates):.1f} steps a second each", flush=True
            )


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
