"""A task fails and nobody looks at its result: the error is reported when the last reference
goes."""

import os
import subprocess
import sys

PROGRAM = """
import ray, sys, time

@ray.remote(max_retries=0)
def fail(text):
    raise ValueError(text)

@ray.remote
def after(x):
    return x

@ray.remote
class Actor:
    def call(self):
        return 1

ray.init(num_cpus=1, log_to_driver=LOG)     # one after the other
actor = Actor.remote()
ray.get(actor.call.remote())
ray.kill(actor)
ray.wait([actor.call.remote()])
actor.call.remote()
ray.wait([fail.remote("waited for")])
early = [fail.remote("there before"), fail.remote("there before and not returned")]
ray.get(after.remote(1))
ray.wait(early)
del early
for text in ("read", "asked for"):
    try:
        ray.get(fail.remote(text))
    except ValueError:
        pass
passed_on = after.remote(fail.remote("argument"))
try:
    ray.get(passed_on)
except ValueError:
    pass
slow = ray.remote(time.sleep).remote(30)
ray.cancel(slow)
del slow, passed_on
fail.remote("dropped at once")
held = fail.remote("dropped later")
ray.wait([after.remote(1)])
del held
alive = fail.remote("alive at the end")
ray.wait([after.remote(1)])
ray.get(after.remote(1))
"""


def run(log=True, **env):
    merged = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **env}
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("LOG", str(log))],
        env=merged,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    return result.stderr


def test_only_what_nobody_saw_is_reported():
    for log in (True, False):
        errors = run(log)
        assert (
            errors.count("Unhandled error (suppress with 'RAY_IGNORE_UNHANDLED_ERRORS=1'): ") == 2
        ), errors
        assert "actor died" not in errors
        assert "ValueError: dropped at once" in errors and "ValueError: dropped later" in errors
        for text in (
            "waited for",
            "there before",
            "read",
            "asked for",
            "argument",
            "alive at the end",
            "cancelled",
        ):
            assert f"ValueError: {text}" not in errors


def test_it_can_be_suppressed():
    assert "Unhandled" not in run(RAY_IGNORE_UNHANDLED_ERRORS="1")
