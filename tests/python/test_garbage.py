"""References in cyclic garbage: when somebody waits for room in the store, the processes of the
node collect it."""

import subprocess
import sys

import pytest

PROGRAM = """
import gc, sys, threading
import numpy as np
import ray

# On a busy machine a collection may come late.
ray.init(
    num_cpus=2,
    object_store_memory=80_000_000,
    _system_config={"create_wait_ms": 20_000},
)
gc.disable()                        # collections happen only where the program asks for them
N, EACH = 30, 1_000_000             # 240 MB


class Cycle:
    def __init__(self, ref):
        self.me, self.ref = self, ref


@ray.remote
def ones():
    return np.ones(EACH)


@ray.remote
def fails(array):
    raise ValueError("as asked")


@ray.remote
class Holder:
    def hold(self):
        gc.disable()
        Cycle(ray.put(np.ones(EACH)))


def put():
    Cycle(ray.put(np.ones(EACH)))


def failed_task():
    ref = ray.put(np.ones(EACH))
    try:
        ray.get(fails.remote(ref))
    except ValueError as error:
        kept = error                # its traceback has this frame


def result():
    ref = ones.remote()
    ray.wait([ref])
    Cycle(ref)
    ray.get(ref)


def actor():
    ray.get(holder.hold.remote())


def late_collections():
    result()


def hold_up(phase, info):
    threading.Event().wait(0.7)     # as if there were no processor for the thread


if sys.argv[1] == "late_collections":
    gc.callbacks.append(hold_up)
holder = Holder.remote()
for _ in range(N):
    globals()[sys.argv[1]]()
print("done")
"""


@pytest.mark.parametrize("where", ["put", "failed_task", "result", "late_collections", "actor"])
def test_garbage_gives_its_room_to_those_who_wait(where):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, where], capture_output=True, text=True, timeout=150
    )
    assert done.stdout.endswith("done\n"), done.stdout + done.stderr
