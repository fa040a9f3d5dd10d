"""Workers' output on the driver's terminal."""
import os
import re
import subprocess
import sys

PROGRAM = """
import ray, sys, os
ray.init(num_cpus=2)

@ray.remote
def f(x):
    print("hello from", x)
    print("to stderr", x, file=sys.stderr)
    return os.getpid()

@ray.remote
class Talker:
    def say(self, x):
        print("actor says", x)

ray.get(f.remote("task"))
ray.get(Talker.remote().say.remote("hi"))
"""


def run(**env):
    merged = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **env}
    result = subprocess.run([sys.executable, "-c", PROGRAM], env=merged, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    return result


def test_prefix_and_streams():
    result = run()
    assert re.search(r"^\x1b\[36m\(f pid=\d+\)\x1b\[0m hello from task$", result.stdout, re.M), result.stdout
    assert re.search(r"^\x1b\[36m\(Talker pid=\d+\)\x1b\[0m actor says hi$", result.stdout, re.M), result.stdout
    assert re.search(r"\(f pid=\d+\)\x1b\[0m to stderr task", result.stderr) and ":task_name:" not in result.stdout + result.stderr


def test_no_colour_and_off():
    assert re.search(r"^\(f pid=\d+\) hello from task$", run(RAY_COLOR_PREFIX="0").stdout, re.M)
    assert re.search(r"^hello from task$", run(RAY_DISABLE_WORKER_LOG_PREFIX="1").stdout, re.M)
    assert "hello" not in run(RAY_LOG_TO_DRIVER="0").stdout
