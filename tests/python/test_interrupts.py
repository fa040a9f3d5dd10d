"""Ctrl-C at random moments of a driver raises KeyboardInterrupt, and the driver, its cluster and
its next calls work afterwards.

The signal goes to the whole process group, as from a terminal. RAY_INTERRUPT_ROUNDS says how often
in each phase, RAY_INTERRUPT_SEED at which moments.
"""

import os
import random
import signal
import subprocess
import sys
import time

import pytest
from waiting import until

ROUNDS = int(os.environ.get("RAY_INTERRUPT_ROUNDS", "3"))
SEED = int(os.environ.get("RAY_INTERRUPT_SEED", random.randrange(1_000_000)))

PRELUDE = """
import asyncio, sys, time, threading
import ray
f = ray.remote(lambda x: x + 1)
slow = ray.remote(lambda x: time.sleep(0.3) or x)
@ray.remote
class Counter:
    def __init__(self):
        self.n = 0
    def add(self):
        self.n += 1
        return self.n
"""

# Each row: the code that is interrupted over and over, the code before it, and the check after it.
PHASES = {
    "get": ("ray.get(slow.remote(1))", "", ""),
    "get_many": ("ray.get([f.remote(i) for i in range(200)])", "", ""),
    "wait": ("ray.wait([slow.remote(1)], timeout=5)", "", ""),
    "submit": ("refs = [f.remote(i) for i in range(2000)]", "", ""),
    "new_functions": (
        "[ray.get(ray.remote(lambda x, i=i: x + i).remote(1)) for i in range(100)]",
        "",
        "",
    ),
    "calls": (
        "ray.get([counter.add.remote() for _ in range(300)])",
        "counter = Counter.remote()",
        "n = ray.get(counter.add.remote()); assert n == ray.get(counter.add.remote()) - 1",
    ),
    "actors": (
        "actor = Counter.options(num_cpus=0).remote(); assert ray.get(actor.add.remote()) == 1",
        "",
        "",
    ),
    "put": ("assert ray.get(ray.put(bytes(3 << 20))) == bytes(3 << 20)", "", ""),
    "future": (
        "done = []; future = slow.remote(1).future(); future.add_done_callback(done.append); future.result()",
        "",
        "assert f.remote(1).future().result(30) == 2",
    ),
    "completed": (
        "event = threading.Event(); slow.remote(1)._on_completed(lambda value: event.set()); event.wait()",
        "",
        "assert f.remote(1).future().result(30) == 2",
    ),
    "asyncio": (
        "asyncio.run(main())",
        "async def main():\n    await asyncio.gather(*(slow.remote(i) for i in range(3)))",
        "assert asyncio.run(one()) == 2",
    ),
    "loop_again": (
        "loop.run_until_complete(main())",
        "loop = asyncio.new_event_loop()\nasync def main():\n    for i in range(100):\n        await f.remote(i)",
        "assert loop.run_until_complete(one()) == 2",
    ),
    "sessions": ("ray.shutdown(); ray.init(num_cpus=2, configure_logging=False)", "", ""),
}

DRIVER = (
    PRELUDE
    + """
async def one():
    return await f.remote(1)
ray.init(num_cpus=2)
{before}
ray.get(f.remote(0))
print("up", flush=True)
for line in sys.stdin:
    try:
        print("go", flush=True)
        while True:
            {phase}
    except KeyboardInterrupt:
        pass
    if not ray.is_initialized():
        ray.init(num_cpus=2)
    assert ray.get(f.remote(1), timeout=60) == 2
    {after}
    print("right", flush=True)
ray.shutdown(wait_for_processes=True)
print("end", flush=True)
"""
)


def of_group(group):
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/stat") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
            if entry.isdigit() and int(fields[3]) == group and fields[0] != "Z":
                found.append(int(entry))
        except (OSError, ValueError, IndexError):
            pass
    return found


def start(code):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def await_none_of(group):
    until(lambda: of_group(group), lambda left: not left)


@pytest.mark.parametrize("name", PHASES)
def test_ctrl_c_at_random_moments_harms_nothing(name):
    moments = random.Random(f"{SEED} {name}")
    phase, before, after = PHASES[name]
    driver = start(DRIVER.format(phase=phase, before=before, after=after))
    try:
        assert driver.stdout.readline() == "up\n"
        for number in range(ROUNDS):
            driver.stdin.write("next\n")
            driver.stdin.flush()
            assert driver.stdout.readline() == "go\n"
            time.sleep(moments.uniform(0, 0.6 if name == "sessions" else 0.2))
            os.killpg(driver.pid, signal.SIGINT)
            assert driver.stdout.readline() == "right\n", f"round {number} of seed {SEED}"
        driver.stdin.close()
        assert driver.stdout.readline() == "end\n" and driver.wait(30) == 0
        await_none_of(driver.pid)
    finally:
        driver.kill()
        driver.wait()
        driver.stdout.close()


@pytest.mark.parametrize(
    "where",
    [
        "import ray; print('go', flush=True); ray.init(num_cpus=1); ray.get(ray.remote(lambda: __import__('signal').pause()).remote())",
        "import ray; ray.init(num_cpus=1); ref = ray.remote(lambda: __import__('signal').pause()).remote(); print('go', flush=True); ray.get(ref)",
    ],
)
def test_a_driver_that_ends_by_it_leaves_nothing(where):
    for _ in range(ROUNDS):
        driver = start(where)
        try:
            assert driver.stdout.readline() == "go\n"
            time.sleep(random.uniform(0, 0.4))
            os.killpg(driver.pid, signal.SIGINT)
            assert driver.wait(30) == -signal.SIGINT
            await_none_of(driver.pid)
        finally:
            driver.kill()
            driver.wait()
            driver.stdout.close()
            driver.stdin.close()


def test_starting_and_leaving_is_not_torn():
    """A signal that comes while init() or shutdown() is at work is delivered afterwards, and a
    second one at once."""
    from ray._private.interrupts import deferred_interrupts

    steps = []
    with pytest.raises(KeyboardInterrupt):
        with deferred_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
            steps.append("went on")
    with pytest.raises(KeyboardInterrupt):
        with deferred_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            steps.append("not reached")
    assert steps == ["went on"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
