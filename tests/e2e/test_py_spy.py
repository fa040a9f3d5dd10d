"""Where py-spy is installed and allowed, a node uses it. Otherwise the answer says what is missing,
and the process samples itself."""

import json
import os
import stat
import subprocess
import sys
import textwrap

import pytest
from cluster import Cluster, world
from waiting import eventually, until
from http_api import Api

import ray

ADVICE = "This command requires `py-spy` to be installed with root permissions."
SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Spied:
    """A cluster whose node looks for programs first in a directory of the test."""

    def __init__(self, shell, directory):
        self.shell, self.directory = shell, directory
        directory.mkdir()
        path = ":".join(part for part in SYSTEM.split(":") if not os.path.exists(f"{part}/py-spy"))
        shell.env["PATH"] = f"{directory}:{path}"
        self.cluster = Cluster(shell, dashboard_port=0)
        self.api = Api.of(shell, self.cluster.output)
        ray.init(address=self.cluster.address, log_to_driver=False)

        @ray.remote
        class Spinner:
            def pid(self):
                return os.getpid(), ray.get_runtime_context().get_node_id()

            def spin(self):
                while True:
                    sum(i * i for i in range(100_000))

        self.actor = Spinner.remote()
        self.pid, self.node = ray.get(self.actor.pid.remote())
        self.actor.spin.remote()
        assert eventually(lambda: "spin" in self.stack(sampler="builtin")[2])

    def program(self, name, text):
        path = self.directory / name
        path.write_text("#!/bin/sh\n" + textwrap.dedent(text))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def ask(self, path, **query):
        status, headers, body = self.api.request(
            "GET", path, {"pid": self.pid, "node_id": self.node, **query}
        )
        return status, headers, body.decode()

    def stack(self, **query):
        return self.ask("/worker/traceback", **query)

    def profile(self, **query):
        return self.ask("/worker/cpu_profile", duration=1, **query)


def spins(answer):
    """Tells whether a stack shows the busy function. A thread that gets no processor for a while is
    missing in one look, so tests look again."""
    return "spin (" in answer[2]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with world() as shell:
        yield Spied(shell, tmp_path_factory.mktemp("py-spy") / "bin")


@pytest.fixture
def spied(cluster):
    yield cluster
    for left in cluster.directory.iterdir():
        left.unlink()
    assert not list(cluster.shell.root.glob("session_2*/py-spy-*")), "its files are gone"


def test_without_it_the_advice_comes_first_then_the_built_in_sampler(spied):
    status, headers, text = until(spied.stack, spins)
    assert (
        status == 200
        and headers["X-Ray-Profiling-Sampler"] == "builtin"
        and "not installed" in headers["X-Ray-Profiling-Note"]
    )
    assert (
        text.startswith(ADVICE)
        and "sudo chmod u+s `which py-spy`" in text
        and "passwordless sudo" in text
    )
    assert text.index("passwordless sudo") < text.index("spin (")
    status, headers, text = spied.profile()
    assert (
        status == 200
        and headers["Content-Type"].startswith("image/svg+xml")
        and headers["X-Ray-Profiling-Sampler"] == "builtin"
    )
    assert "py-spy is not installed" in text and "spin (" in text
    for body in (spied.profile(format="raw")[2], spied.profile(format="speedscope")[2]):
        assert ADVICE not in body and "spin" in body, "what programs read has no advice in it"


def test_who_wants_py_spy_or_nothing_is_refused_with_the_advice(spied):
    for answer in (spied.stack(sampler="py-spy"), spied.profile(sampler="py-spy")):
        assert answer[0] == 500 and ADVICE in answer[2] and "spin" not in answer[2]
    assert spied.api.get("/api/profiling_enabled")[1]["data"]["pyspyAdvice"].startswith(ADVICE)


def test_its_answers_and_arguments_are_passed_on(spied):
    spied.program(
        "py-spy",
        """
        echo "$@" > "$0.arguments"
        [ "$1" = dump ] && echo "dump of $3" && exit
        while [ "$1" != --output ]; do shift; done
        echo "<svg>recorded</svg>" > "$2"
    """,
    )
    arguments = lambda: (spied.directory / "py-spy.arguments").read_text().split()
    status, headers, text = spied.stack()
    assert (status, headers["X-Ray-Profiling-Sampler"], text) == (
        200,
        "py-spy",
        f"dump of {spied.pid}\n",
    )
    assert arguments() == ["dump", "--pid", str(spied.pid)]
    spied.stack(native=1, subprocesses=1)
    assert arguments()[3:] == ["--native", "--subprocesses"]
    status, headers, text = spied.profile(native=1, idle=1)
    assert (status, headers["Content-Type"], text) == (
        200,
        "image/svg+xml",
        "<svg>recorded</svg>\n",
    )
    assert arguments()[5:] == ["--format", "flamegraph", "--duration", "1", "--idle", "--native"]
    assert "sandbox" in headers["Content-Security-Policy"]
    status, headers, text = spied.profile(format="speedscope", ip="127.0.0.1")
    assert (
        headers["Content-Type"].startswith("text/plain")
        and arguments()[6] == "speedscope"
        and "--native" not in arguments()
    )
    until(lambda: spied.stack(sampler="builtin"), spins)


def test_a_task_is_dumped_and_recorded_by_its_id(spied):
    spied.program(
        "py-spy",
        'if [ $1 = dump ]; then echo "dump of $3"; else while [ "$1" != --output ]; do shift; done; echo "<?xml?><svg>recorded</svg>" > "$2"; fi',
    )
    row = eventually(
        lambda: [
            task
            for task in ray.util.state.list_tasks(detail=True)
            if task["state"] == "RUNNING" and task["name"].endswith("spin")
        ]
    )[0]
    of_task = {"task_id": row["task_id"], "attempt_number": row["attempt_number"]}
    assert spied.ask("/task/traceback", **of_task)[2] == f"dump of {spied.pid}\n"
    _, headers, text = spied.ask("/task/cpu_profile", duration=1, **of_task)
    assert (
        headers["Content-Type"].startswith("text/html")
        and text.startswith("<style>")
        and text.endswith("<svg>recorded</svg>\n")
    )


def test_without_rights_the_advice_and_the_built_in_sampler(spied):
    spied.program(
        "py-spy",
        "echo 'Permission Denied: Try running again with elevated permissions' >&2; exit 1",
    )
    status, headers, text = until(spied.stack, spins)
    assert (
        status == 200
        and text.startswith(ADVICE)
        and "spin (" in text
        and "Permission Denied" in headers["X-Ray-Profiling-Note"]
    )
    status, _, text = spied.stack(sampler="py-spy")
    assert status == 500 and "Permission Denied" in text and ADVICE in text


def test_what_fails_for_another_reason_says_it(spied):
    spied.program(
        "py-spy", "echo 'Error: Failed to find python version from target process' >&2; exit 1"
    )
    status, headers, text = until(spied.stack, spins)
    assert (
        status == 200
        and ADVICE not in text
        and "spin (" in text
        and "Failed to find python version" in headers["X-Ray-Profiling-Note"]
    )
    status, _, text = spied.profile(sampler="py-spy")
    assert (status, text) == (
        500,
        "py-spy: Error: Failed to find python version from target process",
    )
    spied.program("py-spy", "kill -9 $$")
    assert "killed by signal 9" in spied.stack(sampler="py-spy")[2]


def test_only_processes_of_the_cluster_are_looked_at(spied):
    spied.program("py-spy", 'echo "dump of $3"')
    status, _, text = spied.stack(pid=os.getppid())
    assert status == 500 and "no worker or driver" in text and "dump of" not in text
    assert spied.stack(pid=os.getpid())[2] == f"dump of {os.getpid()}\n", "this driver is one"
    status, _, text = spied.stack(sampler="perf")
    assert status == 400 and "unknown sampler 'perf'" in text
    assert spied.stack(node_id="f" * 56)[0] == 500


def test_the_real_py_spy_dumps_and_records(spied, tmp_path):
    made = subprocess.run(
        [sys.executable, "-m", "venv", tmp_path / "venv"], capture_output=True, text=True
    )
    if made.returncode == 0:
        made = subprocess.run(
            [
                tmp_path / "venv" / "bin" / "pip",
                "install",
                "-q",
                "--retries=0",
                "--timeout=20",
                "py-spy",
            ],
            capture_output=True,
            text=True,
        )
    if made.returncode != 0:
        pytest.skip("py-spy cannot be installed here: " + made.stderr[-200:])
    spied.program("py-spy", f'exec {tmp_path}/venv/bin/py-spy "$@"\n')
    status, headers, text = spied.stack()
    if headers["X-Ray-Profiling-Sampler"] != "py-spy":
        pytest.skip("py-spy may not trace here: " + headers["X-Ray-Profiling-Note"])
    assert f"Process {spied.pid}" in text and "spin (" in text
    _, headers, text = spied.profile()
    assert headers["X-Ray-Profiling-Sampler"] == "py-spy" and "<svg" in text and "spin (" in text
    assert any(
        "spin" in frame["name"]
        for frame in json.loads(spied.profile(format="speedscope")[2])["shared"]["frames"]
    )
