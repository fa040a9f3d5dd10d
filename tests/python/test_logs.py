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
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=merged, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    return result


def test_prefix_and_streams():
    result = run()
    assert re.search(r"^\x1b\[36m\(f pid=\d+\)\x1b\[0m hello from task$", result.stdout, re.M), (
        result.stdout
    )
    assert re.search(r"^\x1b\[36m\(Talker pid=\d+\)\x1b\[0m actor says hi$", result.stdout, re.M), (
        result.stdout
    )
    assert (
        re.search(r"\(f pid=\d+\)\x1b\[0m to stderr task", result.stderr)
        and ":task_name:" not in result.stdout + result.stderr
    )


def test_names_of_tasks_do_not_paint_the_terminal():
    program = """
import ray
ray.init(num_cpus=1)
ray.get(ray.remote(lambda: print("said")).options(name="\\x1b[31mred\\n").remote())
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "RAY_COLOR_PREFIX": "0"}
    result = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60
    )
    assert (
        re.search(r"^\(\\x1b\[31mred *pid=\d+\) said$", result.stdout, re.M)
        and "\x1b" not in result.stdout
    ), result.stdout


def test_lines_left_open_by_other_writers_take_no_marker_in():
    program = """
import ray, os, subprocess
ray.init(num_cpus=1)

@ray.remote
def f():
    os.write(1, b"of a library")

@ray.remote
def g():
    subprocess.run(["printf", "of a child"])

@ray.remote
def h():
    print("whole")

ray.get([f.remote(), g.remote(), h.remote()])
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "RAY_COLOR_PREFIX": "0"}
    result = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    lines = re.sub(r" pid=\d+", "", result.stdout).splitlines()
    assert [line for line in lines if "of a" in line or "whole" in line] == [
        "(f) of a library",
        "(g) of a child",
        "(h) whole",
    ], result.stdout
    assert ":job_id:" not in result.stdout and ":task_name:" not in result.stdout


def test_what_goes_to_the_descriptor_is_not_labelled_with_another_function():
    program = """
import ray, os, sys
ray.init(num_cpus=1)

@ray.remote
def a():
    print("a prints")
    print("a complains", file=sys.stderr)

@ray.remote
def b(number):
    os.write(1, b"b writes %d\\n" % number)
    if number < 10: os.write(2, b"b warns %d\\n" % number)

@ray.remote
def silent(say=False):
    if say: os.write(1, b"no longer silent\\n")

@ray.remote
class X:
    def f(self): os.write(1, b"x writes\\n")

for number in range(3):
    ray.get([a.remote(), b.remote(number)])
    ray.get([a.remote(), silent.remote(), b.remote(number + 10)])
    ray.get([a.remote(), silent.remote()])
ray.get(silent.remote(True))
ray.get(a.remote())
ray.get(X.remote().f.remote())
"""
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "RAY_COLOR_PREFIX": "0",
        "RAY_DEDUP_LOGS": "0",
    }
    result = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    out, err = (
        re.sub(r" ?pid=\d+", "", text).splitlines() for text in (result.stdout, result.stderr)
    )
    assert [line for line in out if "b writes" in line] == [
        f"(b) b writes {number}" for n in range(3) for number in (n, n + 10)
    ], result.stdout
    assert [line for line in err if "b warns" in line] == [
        f"(b) b warns {number}" for number in range(3)
    ], result.stderr
    assert out.count("(a) a prints") == 10 and err.count("(a) a complains") == 10, (
        result.stdout + result.stderr
    )
    assert "() no longer silent" in out, "it has no name, rather than a's"
    assert "(X) x writes" in out or "() x writes" in out, result.stdout
    assert ":task_name:" not in result.stdout + result.stderr


def test_no_colour_and_off():
    assert re.search(r"^\(f pid=\d+\) hello from task$", run(RAY_COLOR_PREFIX="0").stdout, re.M)
    assert re.search(r"^hello from task$", run(RAY_DISABLE_WORKER_LOG_PREFIX="1").stdout, re.M)
    assert "hello" not in run(RAY_LOG_TO_DRIVER="0").stdout


def test_what_was_printed_last_is_shown():
    """The pause between batches of lines would never end here, so the lines come because the driver
    asks for them."""
    program = """
import ray
from ray.cluster_utils import Cluster
cluster = Cluster(head_node_args={"num_cpus": 1})
cluster.add_node(num_cpus=4, resources={"there": 4})
ray.init(address=cluster.address)

@ray.remote(resources={"there": 1})
def f(how, fails=False):
    print("function", how, end="")
    assert not fails

@ray.remote(resources={"there": 1})
def generator():
    print("begin")
    yield 1
    print("generator", end="")

@ray.remote(resources={"there": 1})
class Async:
    async def say(self):
        print("coroutine", end="")

ray.get(ray.remote(print).remote("on the head"))
actor = Async.remote()
generated = generator.remote()
ended = [f.remote("returns"), f.remote("fails", True), actor.say.remote(), generated.completed()]
ray.wait(ended, num_returns=len(ended))
"""
    environment = {"RAY_log_batch_interval_ms": "3600000", "RAY_COLOR_PREFIX": "0"}
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    lines = {line.partition(") ")[2] for line in result.stdout.splitlines()}
    assert lines >= {
        "on the head",
        "function returns",
        "function fails",
        "begin",
        "generator",
        "coroutine",
    }, result.stdout + result.stderr


def test_files_are_rotated(tmp_path):
    program = """
import os, ray, sys
ray.init(num_cpus=1)

@ray.remote
def f():
    for i in range(100):
        print("line", i, "x" * 100)
    return os.getpid()

pid = ray.get(f.remote())
logs = os.path.join(ray._private.worker.global_worker.context["session_dir"], "logs")
print("files:", sorted(name.split(".", 1)[1] for name in os.listdir(logs) if name.startswith("worker-") and f"-{pid}.out" in name))
"""
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "RAY_ROTATION_MAX_BYTES": "4000",
        "RAY_ROTATION_BACKUP_COUNT": "2",
        "RAY_COLOR_PREFIX": "0",
    }
    result = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    assert "files: ['out', 'out.1', 'out.2']" in result.stdout
    # The monitor reads the files that exist when it looks. A file that was rotated away twice
    # between two looks is lost to it, and the task's name with it.
    assert re.search(r"^\((f )?pid=\d+\) line 99 x+$", result.stdout, re.M)


def test_the_lines_of_a_task_are_found_where_they_were_rotated_to():
    program = """
import os, ray, sys, time
from ray.util import state
ray.init(num_cpus=1, log_to_driver=False)

@ray.remote
def f(text):
    for i in range(30):
        print(text, i, "x" * 100)
    return ray.get_runtime_context().get_task_id()

tasks = {text: ray.get(f.remote(text)) for text in ("one", "two", "three")}
while not state.get_task(tasks["three"]): time.sleep(0.02)
for text, task in tasks.items():
    lines = "".join(state.get_log(task_id=task)).splitlines()
    print(text, [int(line.split()[1]) for line in lines] == list(range(30)) and all(line.startswith(text + " ") for line in lines))
for i in range(10): ray.get(f.remote("more"))
print("gone", list(state.get_log(task_id=tasks["one"])))
"""
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "RAY_ROTATION_MAX_BYTES": "2000",
        "RAY_ROTATION_BACKUP_COUNT": "8",
    }
    result = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == ["one True", "two True", "three True", "gone []"], (
        result.stdout
    )


def test_a_driver_without_a_standard_output():
    program = "import ray; ray.init(num_cpus=1); ray.get(ray.remote(lambda: print('lost')).remote()); ray.shutdown()"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1" >&-', sys.executable, program],
        env=env,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_counted_lines_come_at_the_end_of_the_window(tmp_path):
    """No other line follows the repeated one, so only the end of the window can bring its count."""
    program = """
import os, ray, sys
from waiting import touch, until, wait_for
ray.init(num_cpus=2)

@ray.remote(num_cpus=0)
class Talker:
    def say(self, ready, gate):
        touch(ready)
        wait_for(gate)
        print("alike")

talkers = [Talker.remote() for _ in range(3)]
gate = sys.argv[1]
ready = [gate + str(number) for number in range(3)]
said = [talker.say.remote(mine, gate) for talker, mine in zip(talkers, ready)]
until(lambda: all(map(os.path.exists, ready)))
touch(gate)
ray.get(said)
sys.stdin.read()
"""
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "RAY_COLOR_PREFIX": "0",
        # The talkers begin together; on a busy machine one may still come this much later.
        "RAY_DEDUP_LOGS_AGG_WINDOW_S": "5",
    }
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "gate")],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as driver:
        lines = [driver.stdout.readline(), driver.stdout.readline()]
        driver.communicate()
    assert (
        driver.returncode == 0
        and "alike\n" in lines[0]
        and "alike [repeated 2x across cluster]" in lines[1]
    ), lines
