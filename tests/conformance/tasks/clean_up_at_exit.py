# finally blocks and exit functions run when a worker ends.
import atexit
import os
import pathlib
import signal
import sys
import tempfile
import time
import ray

marks = pathlib.Path(tempfile.mkdtemp())


def mark(name):
    (marks / name).touch()


def wait_for(*names):
    deadline = time.monotonic() + 120
    while not all((marks / name).exists() for name in names) and time.monotonic() < deadline:
        time.sleep(0.05)
    print([name for name in names if (marks / name).exists()])


@ray.remote(max_calls=1)
def once():
    atexit.register(mark, "max_calls atexit")


@ray.remote(max_retries=0)
def exits(code):
    atexit.register(mark, f"exit {code} atexit")
    try:
        sys.exit(code)
    finally:
        mark(f"exit {code} finally")


@ray.remote(max_retries=0)
def signals_itself():
    atexit.register(mark, "signal atexit")
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(20)
    finally:
        mark("signal finally")


@ray.remote(max_retries=0)
def registers():
    atexit.register(mark, "idle worker atexit")
    return os.getpid()


@ray.remote
class Actor:
    def __init__(self):
        atexit.register(mark, "idle actor atexit")

    def pid(self):
        return os.getpid()

    def __del__(self):
        mark("idle actor del")

    def __ray_shutdown__(self):
        mark("idle actor hook")


@ray.remote(max_retries=0)
def busy():
    mark("busy")
    try:
        time.sleep(60)
    finally:
        mark("busy finally")


def outcome(ref):
    try:
        return ray.get(ref)
    except ray.exceptions.WorkerCrashedError as error:
        return type(error).__name__


ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
ray.get(once.remote())
wait_for("max_calls atexit")
for code in (0, 3):
    print(code, outcome(exits.remote(code)))
    wait_for(f"exit {code} finally", f"exit {code} atexit")
print("signal", outcome(signals_itself.remote()))
wait_for("signal finally", "signal atexit")
os.kill(ray.get(registers.remote()), signal.SIGTERM)
wait_for("idle worker atexit")
actor = Actor.remote()
os.kill(ray.get(actor.pid.remote()), signal.SIGTERM)
wait_for("idle actor hook", "idle actor del", "idle actor atexit")
last = busy.remote()
wait_for("busy")
ray.shutdown()
wait_for("busy finally")
