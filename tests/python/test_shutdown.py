"""ray.shutdown() and the end of a program while something else is going on. Each program runs in a
process of its own, because the errors that these tests found were crashes and hangs."""

import os
import subprocess
import sys

import pytest

PUT = "ray.put(x)"
TASK = "f.remote(x)"
METHOD = "actor.m.remote(x)"
CREATE = "A.remote(x)"
PRELUDE = """
import ray, threading
ray.init(num_cpus=2)

@ray.remote
def f(x): return x

@ray.remote
class A:
    def __init__(self, x=None): pass
    def m(self, x): return x

actor = A.remote()
ray.get(actor.m.remote(1))
"""


def run(program):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "RAY_ENABLE_AUTO_CONNECT": "0"}
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + program],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    return done


@pytest.mark.parametrize("call", (PUT, TASK, METHOD, CREATE))
def test_while_another_thread_pickles(call):
    done = run(f"""
begun, go_on = threading.Event(), threading.Event()

class Slow:
    def __reduce__(self):
        begun.set()
        go_on.wait()
        return int, (9,)

def work():
    x = Slow()
    try:
        {call}
    except ray.exceptions.RaySystemError as error:
        print(error)

thread = threading.Thread(target=work)
thread.start()
begun.wait()
ray.shutdown()
go_on.set()
thread.join()
""")
    assert "Ray has been shut down" in done.stdout


@pytest.mark.parametrize("again", ("", "ray.init(num_cpus=1)"))
@pytest.mark.parametrize("call", (PUT, TASK, METHOD, CREATE))
def test_by_what_is_being_pickled(call, again):
    done = run(f"""
class Ends:
    def __reduce__(self):
        ray.shutdown()
        {again}
        return int, (9,)

x = Ends()
try:
    {call}
except ray.exceptions.RaySystemError as error:
    print(error)
""")
    assert "Ray has been shut down" in done.stdout


@pytest.mark.parametrize("call", (PUT, TASK))
def test_the_program_ends_while_a_thread_pickles(call):
    run(f"""
import time
x, turns = {{i: (str(i), [i] * 5) for i in range(20000)}}, []

# A traceback that a daemon thread prints while the interpreter ends may end the process: CPython
# cannot take the lock of stderr any more. After the session has been shut down, the error is a
# RuntimeError.
def work():
    while True:
        try:
            {call}
        except (ray.exceptions.RaySystemError, RuntimeError):
            return
        turns.append(1)

threading.Thread(target=work, daemon=True).start()
while len(turns) < 3:
    time.sleep(0.001)
""")


def test_while_values_are_unpickled():
    done = run("""
class Ends:
    def __init__(self): pass
    def __reduce__(self): return ray.shutdown, ()

refs = [ray.put(Ends()), ray.put(2)]
try:
    print(ray.get(refs))
except Exception as error:
    print(type(error).__name__)
""")
    assert done.stdout.strip() in ("[None, 2]", "RaySystemError")


def test_futures_end():
    done = run("""
import asyncio

@ray.remote
def waits(): threading.Event().wait()

ref = waits.remote()
future = ref.future()

async def main():
    async def waiter():
        try:
            await ref
        except ray.exceptions.RaySystemError as error:
            print("await:", error)

    task = asyncio.create_task(waiter())
    await asyncio.sleep(0)
    ray.shutdown()
    await task

asyncio.run(main())
try:
    future.result(30)
except ray.exceptions.RaySystemError as error:
    print("future:", error)
""")
    assert done.stdout.count("Ray has been shut down") == 2, done.stdout


def test_a_future_that_is_settled_after_the_end_starts_no_cluster():
    """Its reference became ready before the end, or by it, and another thread was about to read the
    value."""
    done = run("""
import os
from concurrent.futures import Future
from ray._private import futures

os.environ["RAY_ENABLE_AUTO_CONNECT"] = "1"
ref, future = ray.put(1), Future()
ray.shutdown()
futures.settle(ref, future)
print(ray.is_initialized(), future.exception())
""")
    assert done.stdout.startswith("False System error: Ray has been shut down"), done.stdout


def test_a_daemon_that_had_to_be_killed_leaves_no_socket():
    done = run("""
import os, pathlib, signal, stat
session = pathlib.Path(ray._private.worker.global_worker.node["session_dir"])
os.kill(int(ray.get(ray.remote(lambda: os.environ["RAY_RAYLET_PID"]).remote())), signal.SIGSTOP)
ray.shutdown(wait_for_processes=True)
print([path.name for path in session.rglob("*") if path.is_socket()])
""")
    assert done.stdout.strip() == "[]"
