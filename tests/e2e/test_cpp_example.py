"""C++ as its user sees it: the package is installed into a temporary prefix, programs are built
against it with CMake and run on private clusters."""

import glob
import json
import os
import re
import shutil
import subprocess
import tempfile

import pytest

from ports import free_port
from waiting import until

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(REPO, "build")
BIN = os.path.join(BUILD, "bin")
PROGRAMS = ("ray-head", "ray-node-manager", "ray-object-store", "ray-cpp-worker")
MISSING = [name for name in PROGRAMS if not os.path.exists(os.path.join(BIN, name))]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not built: {', '.join(MISSING)}")

EXAMPLE_OUTPUT = [
    "squares: 1 4 9 16 25",
    "total of order 7: 42",
    "sum of squares to 10: 385",
    "Hello, cluster!",
    "ready: 8, not ready: 0",
    "booked: 105",
    "booked by a task: 108",
    "balance: 108",
    "the ledger is closed",
]


def run(command, timeout=600, check=True, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, **options)
    assert not check or done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done


def build(source, target, prefix):
    run(
        [
            "cmake",
            "-S",
            source,
            "-B",
            target,
            f"-DCMAKE_PREFIX_PATH={prefix}",
            "-DCMAKE_BUILD_TYPE=Debug",
        ]
    )
    run(["cmake", "--build", target, "-j2"], timeout=600)


@pytest.fixture(scope="module")
def scratch():
    # The path must be short, because Unix sockets are made below it.
    path = tempfile.mkdtemp(prefix="rtc-", dir="/tmp")
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def prefix(scratch):
    path = os.path.join(scratch, "prefix")
    for component in ("cpp", "cpp_dev"):
        run(["cmake", "--install", BUILD, "--component", component, "--prefix", path])
    return path


@pytest.fixture(scope="module")
def example(scratch, prefix):
    target = os.path.join(scratch, "example")
    build(os.path.join(REPO, "cpp", "example"), target, prefix)
    return os.path.join(target, "example")


@pytest.fixture(scope="module")
def checks(scratch, prefix):
    target = os.path.join(scratch, "checks")
    build(os.path.join(REPO, "tests", "e2e", "cpp_checks"), target, prefix)
    return os.path.join(target, "checks")


@pytest.fixture
def env(scratch):
    """An environment with a session root and a home of its own; nothing of its clusters may be left
    afterwards."""
    root = tempfile.mkdtemp(dir=scratch)
    env = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    env.update(RAY_BIN=BIN, RAY_TMPDIR=root, HOME=root, RAY_COLOR_PREFIX="0")
    yield env
    # The cluster of a program that ended without Shutdown() notices that and ends.
    until(lambda: processes_of(root), lambda left: not left)


def processes_of(root):
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                command = file.read().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if root in command:
            found.append(command)
    return found


def without_worker_lines(text):
    """Returns the program's own output. A worker's line may come in the middle of one of its
    lines."""
    return re.sub(r"\(\w+ pid=\d+\) greeting cluster\n", "", text)


def test_example_runs_on_a_cluster_of_its_own(example, env):
    done = run([example], env=env)
    lines = without_worker_lines(done.stdout).splitlines()
    assert lines[:-1] == EXAMPLE_OUTPUT
    assert re.fullmatch(
        r"error: C\+\+ exception in Divide \(pid=\d+, ip=127\.0\.0\.1\): std::invalid_argument: division by zero",
        lines[-1],
    )
    assert re.search(r"\(Greet pid=\d+\) greeting cluster\n", done.stdout)


@pytest.mark.skipif(not os.path.exists(os.path.join(BIN, "rayctl")), reason="not built: rayctl")
def test_example_joins_a_running_cluster(example, env, scratch):
    port = free_port()
    rayctl = os.path.join(BIN, "rayctl")
    run(
        [
            rayctl,
            "start",
            "--head",
            f"--port={port}",
            "--node-ip-address=127.0.0.1",
            "--num-cpus=2",
        ],
        env=env,
    )
    try:
        done = run([example, f"--ray_address=127.0.0.1:{port}"], env=env)
        assert without_worker_lines(done.stdout).splitlines()[:-1] == EXAMPLE_OUTPUT
        # The same program runs again as a second job of the cluster.
        again = run(
            [example], env={**env, "RAY_ADDRESS": f"127.0.0.1:{port}", "RAY_PROFILING": "1"}
        )
        assert without_worker_lines(again.stdout).splitlines()[:-1] == EXAMPLE_OUTPUT
        listed = run(
            [rayctl, "list", "tasks", "--format=json", "--detail", "--filter=type=NORMAL_TASK"],
            env=env,
        )
        sites = [task["call_site"] for task in json.loads(listed.stdout)]
        assert sites and all(re.search(r"/(main|remote)\.cc:\d+$", site) for site in sites), sites
        trace = os.path.join(scratch, "trace.json")

        def kinds_by_driver():
            run([rayctl, "timeline", "-o", trace], env=env)
            with open(trace) as file:
                spans = [
                    (event["tid"], event["cat"])
                    for event in json.load(file)
                    if event.get("tid", "").startswith("driver:") and event["ph"] == "X"
                ]
            return [
                [kind for of, kind in spans if of == tid] for tid in sorted({of for of, _ in spans})
            ]

        def is_right(found):
            if len(found) != 2:
                return False
            first, second = found
            return (
                first.count("submit_task") == second.count("submit_task") > 5
                and set(first) == {"submit_task"}
                and set(second) == {"submit_task", "ray.get", "ray.put", "ray.wait"}
            )

        # Processes send what they have recorded a moment later, which is longer on a busy machine.
        until(kinds_by_driver, is_right)
    finally:
        run([rayctl, "stop"], env=env)


def test_wrong_flags_and_addresses_are_errors(example, env):
    flag = run([example, "--colour=red"], env=env, check=False)
    assert flag.returncode == 1
    assert "Unknown command line flag 'colour'" in flag.stderr
    address = run([example, "--ray_address=127.0.0.1:1"], env=env, check=False)
    assert address.returncode != 0
    assert "127.0.0.1:1" in address.stderr


@pytest.mark.parametrize("mode", ["cluster", "local"])
def test_the_checks_of_the_cpp_interface_pass(checks, env, mode, tmp_path):
    done = run([checks, str(tmp_path), mode], env=env, check=False)
    assert "FAILED" not in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok after the end" in done.stdout
    if mode == "cluster":
        assert "ok concurrency" in done.stdout
        assert re.search(r"\(Say pid=\d+\)\S* printed last\n", done.stdout), done.stdout
        logs = "".join(
            open(path).read()
            for path in glob.glob(
                os.path.join(env["RAY_TMPDIR"], "session_*", "logs", "cpp-core-driver-*")
            )
        )
        assert "checks.cc" in logs and "checks begin" in logs


def test_headers_stand_alone(scratch, prefix):
    include = os.path.join(prefix, "include")
    headers = sorted(glob.glob(os.path.join(include, "ray", "**", "*.h"), recursive=True))
    headers = [os.path.relpath(path, include) for path in headers if "thirdparty" not in path]
    assert "ray/api.h" in headers
    for header in headers:
        text = f"#include <{header}>\nint main() {{}}\n"
        run(
            [
                "g++",
                "-std=c++17",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-fsyntax-only",
                "-I",
                include,
                "-isystem",
                os.path.join(include, "ray", "thirdparty"),
                "-x",
                "c++",
                "-",
            ],
            input=text,
        )


def test_arguments_are_checked_at_compile_time(scratch, prefix):
    include = os.path.join(prefix, "include")
    text = "#include <ray/api.h>\nint f(int x) { return x; }\nint main() { ray::Task(f).Remote(std::string()); }\n"
    done = run(
        [
            "g++",
            "-std=c++17",
            "-fsyntax-only",
            "-I",
            include,
            "-isystem",
            os.path.join(include, "ray", "thirdparty"),
            "-x",
            "c++",
            "-",
        ],
        input=text,
        check=False,
    )
    assert done.returncode != 0
    assert "arguments not match" in done.stderr


def test_build_tree_is_a_package_too(scratch):
    run(
        [
            "cmake",
            "-S",
            os.path.join(REPO, "cpp", "example"),
            "-B",
            os.path.join(scratch, "tree"),
            f"-DCMAKE_PREFIX_PATH={BUILD}",
        ]
    )
