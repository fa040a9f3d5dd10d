"""rayctl for those who run clusters: pages that refresh, what waits and why, nodes that leave,
checks, the benchmark."""

import hashlib
import json
import os
import pty
import select
import signal
import subprocess

import pytest
from cluster import cluster, running_dashboard
from waiting import PATIENCE_S, eventually
from shell import BIN
from http_api import Api

import ray


@pytest.fixture
def joined():
    with cluster(cpus=2) as one:
        yield one


class Terminal:
    """A command that runs on a terminal of its own."""

    def __init__(self, shell, *words):
        self.screen, other = pty.openpty()
        self.process = subprocess.Popen(
            shell.command(*words),
            env={**shell.env, "TERM": "xterm"},
            cwd=shell.scratch,
            stdin=other,
            stdout=other,
            stderr=other,
            start_new_session=True,
        )
        os.close(other)
        self.text = ""

    def read_until(self, condition, seconds=PATIENCE_S):
        def look():
            while select.select([self.screen], [], [], 0)[0]:
                try:
                    self.text += os.read(self.screen, 65536).decode(errors="replace")
                except OSError:
                    break
            return condition(self.text)

        assert eventually(look, seconds), self.text[-2000:]

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.screen)


def test_the_upload_of_a_package_is_shown_on_terminals_only(running, tmp_path):
    # The file is so large that it is sent in several pieces.
    (tmp_path / "data").write_bytes(data := os.urandom(5 << 20))
    words = [
        "job",
        "submit",
        f"--address=http://{running_dashboard(running)}",
        f"--working-dir={tmp_path}",
        "--",
        "sha256sum",
        "data",
    ]
    terminal = Terminal(running, *words)
    try:
        terminal.read_until(lambda text: "succeeded" in text)
        assert (
            hashlib.sha256(data).hexdigest() in terminal.text
            and "\rUploading [" in terminal.text
            and terminal.text.index("Uploading [") < terminal.text.index("submitted successfully")
        )
        assert terminal.process.wait(timeout=120) == 0
    finally:
        terminal.close()
    done = running.run(*words)
    assert done.returncode == 0 and "Uploading" not in done.stdout + done.stderr


# ---- pages in place


def test_status_is_watched_in_place_until_q(running):
    terminal = Terminal(running, "status", "--watch", "--interval=0.2")
    try:
        terminal.read_until(lambda text: text.count("Autoscaler status") >= 3)
        assert (
            terminal.text.startswith("\x1b[?1049h\x1b[?25l") and terminal.text.count("\x1b[H") >= 3
        )
        os.write(terminal.screen, b"q")
        terminal.read_until(lambda text: text.endswith("\x1b[?25h\x1b[?1049l"))
        assert terminal.process.wait(timeout=120) == 0
    finally:
        terminal.close()


def test_watching_survives_a_lost_head(shell):
    shell.ok("start", "--head", "--port=0", "--num-cpus=1")
    terminal = Terminal(shell, "status", "-w", "--interval=0.2")
    try:
        terminal.read_until(lambda text: "Autoscaler status" in text)
        record = json.loads(next(shell.root.glob("session_2*/node_*.json")).read_text())
        os.kill(
            next(p["pid"] for p in record["processes"] if p["name"] == "ray-head"), signal.SIGKILL
        )
        terminal.read_until(lambda text: "Cannot refresh, showing the last answer: " in text)
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.process.wait(timeout=120) == 0
    finally:
        terminal.close()


def test_pages_follow_each_other_without_a_terminal(running):
    out = running.ok("status", "--watch", "--interval=0.1", "--iterations=2")
    assert out.count("Autoscaler status") == 2 and "\x1b" not in out
    assert "need --watch" in running.fails("status", "--interval=1", code=2)
    assert "from 0.1 to 3600" in running.fails("status", "--watch", "--interval=0", code=2)


def test_top_shows_nodes_tasks_and_the_busiest_workers(joined):
    @ray.remote
    class Burner:
        def burn(self):
            while True:
                pass

        def ready(self):
            return os.getpid()

    burner = Burner.options(name="hot", max_concurrency=2).remote()
    pid = ray.get(burner.ready.remote())
    burner.burn.remote()
    shell = joined.shell

    def busiest():
        lines = (
            shell.ok("top", "--iterations=2", "--interval=0.5")
            .strip()
            .split("\n\n")[-1]
            .splitlines()
        )
        rows = [line.split() for line in lines]
        return (
            rows
            and rows[0][:3] == ["PID", "NODE", "CPU"]
            and rows[1][0] == str(pid)
            and "actor Burner 'hot'" in lines[1]
        )

    assert eventually(busiest), shell.ok("top", "--iterations=1")
    text = shell.ok("top", "--iterations=1", "--sort=memory")
    assert (
        "RUNNING" in text and "HOST CPU" in text and "driver of job" in text and "/2.0 CPU" in text
    )
    assert "it takes cpu or memory" in shell.fails("top", "--sort=name", code=2)


# ---- what waits


def test_debug_says_what_waits_and_why(joined):
    assert "Nothing waits." in joined.shell.ok("debug")

    @ray.remote(num_cpus=2)
    class Holder:
        def hold(self):
            return 1

    @ray.remote(num_cpus=1)
    def crowded():
        return 1

    @ray.remote(num_cpus=64)
    def huge():
        return 1

    @ray.remote(num_cpus=0)
    def after(x):
        return x

    holder = Holder.remote()
    ray.get(holder.hold.remote())
    waiting = [crowded.remote(), huge.remote()]
    waiting.append(after.remote(waiting[0]))

    def explained():
        said = json.loads(joined.shell.ok("debug", "--format=json"))["waiting"]
        by = {one["what"].split()[0]: one for one in said}
        return all(name in " ".join(by) for name in ("crowded", "huge", "after")) and by

    assert eventually(explained), joined.shell.ok("debug")
    text = joined.shell.ok("debug")
    assert "no node has 64.0 of CPU (the largest node has 2.0): it waits until one joins" in text
    assert (
        "needs 1.0 of CPU (0.0 free)" in text
        and "held by actor Holder" in text
        and "arguments are not ready" in text
    )
    ray.kill(holder)
    assert ray.get(waiting[0], timeout=60) == 1


def test_a_job_that_waits_is_among_what_waits(running):
    shell, address = running, f"--address={running.address}"
    shell.ok(
        "job",
        "submit",
        address,
        "--no-wait",
        "--submission-id=wants",
        "--entrypoint-num-cpus=64",
        "--",
        "true",
    )
    shell.ok(
        "job",
        "submit",
        address,
        "--no-wait",
        "--submission-id=picky",
        '--entrypoint-label-selector={"zone": "moon"}',
        "--",
        "true",
    )
    try:
        assert eventually(
            lambda: (
                "{'CPU': 64.0}: 1+ pending tasks/actors (infeasible: no node has that much; they wait until one joins) [job wants]"
                in shell.ok("status")
            ),
            30,
        ), shell.ok("status")
        text = shell.ok("debug")
        assert (
            "job wants {'CPU': 64.0}" in text
            and "no node has 64.0 of CPU" in text
            and "job picky, only on" in text
            and "moon" in text
        )
        api = Api(
            running_dashboard(running), (shell.scratch / ".ray" / "auth_token").read_text().strip()
        )
        waiting = [
            line
            for line in api.request("GET", "/metrics")[2].decode().splitlines()
            if line.startswith("ray_cluster_waiting{")
        ]
        assert any('State="infeasible"' in line and line.endswith(" 2") for line in waiting), (
            waiting
        )
    finally:
        shell.ok("job", "stop", "wants")
        shell.ok("job", "stop", "picky")
    assert "job wants" not in shell.ok("status") + shell.ok("debug")


def test_who_holds_what_a_job_has(running):
    shell = running
    shell.ok(
        "job",
        "submit",
        "--no-wait",
        "--submission-id=holds",
        "--entrypoint-num-cpus=1",
        "--",
        "sleep",
        "3600",
    )
    try:
        assert eventually(lambda: "RUNNING" in shell.ok("job", "status", "holds"))
        cpus = json.loads(shell.ok("cluster-resources", "--format=json"))["CPU"]
        shell.ok(
            "job",
            "submit",
            "--no-wait",
            "--submission-id=after",
            f"--entrypoint-num-cpus={cpus:g}",
            "--",
            "true",
        )
        assert eventually(lambda: "held by job holds (pid " in shell.ok("debug")), shell.ok("debug")
    finally:
        shell.ok("job", "stop", "holds")
    assert eventually(lambda: "succeeded" in shell.ok("job", "status", "after"))


# ---- leaving


def drain(joined, *words, run=None, **options):
    run = run or joined.shell.ok
    return run(
        "drain-node",
        f"--address={joined.address}",
        "--reason-message=maintenance",
        *words,
        **options,
    )


def test_a_node_that_is_drained_finishes_and_leaves(joined):
    second = joined.join(cpus=2, resources='{"there": 1}')
    joined.await_nodes(2)
    node = joined.node_id(second)

    @ray.remote(resources={"there": 1}, num_cpus=0)
    class Worker:
        def __init__(self):
            self.go = False

        def where(self):
            return ray.get_runtime_context().get_node_id()

    worker = Worker.remote()
    assert ray.get(worker.where.remote()) == node
    idle = [f"--node-id={node}", "--reason=DRAIN_NODE_REASON_IDLE_TERMINATION"]
    assert "it is not idle: 1 actor" in drain(joined, *idle, run=joined.shell.fails)
    assert joined.state(node)["Alive"]
    assert "takes nothing new" in drain(
        joined, f"--node-id={node}", "--reason=DRAIN_NODE_REASON_PREEMPTION"
    )
    # Nothing new comes to a node that drains, but what is there goes on.
    assert eventually(lambda: ray.available_resources().get("there", 0) == 0)
    assert eventually(lambda: "draining" in joined.shell.ok("nodes"))

    @ray.remote(num_cpus=1)
    def where():
        return ray.get_runtime_context().get_node_id()

    assert set(
        ray.get(
            [where.options(scheduling_strategy="SPREAD").remote() for _ in range(20)], timeout=60
        )
    ) == {ray.get_runtime_context().get_node_id()}
    assert ray.get(worker.where.remote()) == node
    ray.kill(worker)
    assert eventually(lambda: not joined.state(node)["Alive"])
    assert (
        joined.state(node)["DeathReason"] == 4
        and "drained: maintenance" in joined.state(node)["DeathReasonMessage"]
    )


def test_a_deadline_ends_what_runs(joined):
    node = joined.node_id(joined.join(cpus=2, resources='{"there": 1}'))
    joined.await_nodes(2)

    @ray.remote(resources={"there": 1}, num_cpus=0, max_retries=0)
    def endless():
        while True:
            pass

    endless.remote()
    assert eventually(lambda: ray.available_resources().get("there", 0) == 0)
    assert "or in 1 s whatever runs" in drain(
        joined,
        f"--node-id={node}",
        "--reason=DRAIN_NODE_REASON_PREEMPTION",
        "--deadline-remaining-seconds=1",
    )
    assert eventually(lambda: not joined.state(node)["Alive"])


def test_an_idle_node_leaves_at_once(joined):
    node = joined.node_id(joined.join(cpus=2))
    joined.await_nodes(2)
    drain(joined, f"--node-id={node}", "--reason=DRAIN_NODE_REASON_IDLE_TERMINATION")
    assert eventually(lambda: not joined.state(node)["Alive"])
    assert joined.state(node)["DeathReason"] == 3
    assert node not in joined.shell.ok("status").split("Recent failures:")[1], (
        "it was asked to leave"
    )


@pytest.mark.parametrize(
    "words, code, said",
    [
        ([], 2, "--reason and --reason-message are missing"),
        (["--reason-message=x"], 2, "--reason is missing"),
        (["nope"], 2, "it takes only options, such as --node-id ID"),
        (["--reason=DRAIN_NODE_REASON_PREEMPTION"], 2, "--reason-message is missing"),
        (["--reason=BORED", "--reason-message=x"], 2, "it takes DRAIN"),
        (
            ["--reason=DRAIN_NODE_REASON_PREEMPTION", "--reason-message=x", "--node-id=zz"],
            2,
            "--node-id is 'zz'",
        ),
        (
            [
                "--reason=DRAIN_NODE_REASON_PREEMPTION",
                "--reason-message=x",
                "--deadline-remaining-seconds=-1",
            ],
            2,
            "whole number",
        ),
        (
            [
                "--reason=DRAIN_NODE_REASON_PREEMPTION",
                "--reason-message=x",
                f"--node-id={'ab' * 28}",
            ],
            1,
            "has no node",
        ),
    ],
)
def test_wrong_words_of_drain_node(running, words, code, said):
    assert said in running.fails("drain-node", *words, code=code, RAY_ADDRESS=running.address)


# ---- checks and the benchmark


def test_components_are_checked(running):
    for component in ("head", "nodes", "dashboard"):
        assert running.ok("health-check", f"--component={component}", "--skip-version-check") == ""
    for absent in ("ray_client_server", "x"):
        assert "it takes head, nodes or dashboard" in running.fails(
            "health-check", f"--component={absent}", code=2
        )
    assert "ray_client_server" not in running.ok("health-check", "--help")


def test_the_benchmark_loads_no_cluster_that_runs(running):
    jobs = running.ok("list", "jobs", "--format=json")
    running.ok(
        "microbenchmark",
        "--only=single client tasks sync",
        "--rounds=1",
        "--seconds=1",
        RAY_ADDRESS=running.address,
    )
    running.ok("microbenchmark", "--only=single client tasks sync", "--rounds=1", "--seconds=1")
    assert running.ok("list", "jobs", "--format=json") == jobs


def test_the_benchmark_runs_on_a_cluster_of_its_own(shell):
    out = shell.ok(
        "microbenchmark",
        "--only=tasks sync",
        "--rounds=1",
        "--seconds=1",
        "--out=rates.json",
        RAY_ADDRESS="127.0.0.1:1",
    )
    assert out.startswith("single client tasks sync per second ")
    assert list(json.loads((shell.scratch / "rates.json").read_text())) == [
        "single client tasks sync"
    ]
    assert eventually(lambda: not shell.processes()), shell.processes()
    done = subprocess.run(
        [BIN / "rayctl", "microbenchmark", "--only=nothing is called so", "--rounds=1"],
        env=shell.env,
        cwd=shell.scratch,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "no line of the benchmark matches" in done.stderr


def test_the_benchmark_refuses_a_file_that_it_cannot_write_before_it_measures(shell):
    done = shell.run("microbenchmark", "--out", "/nonexistent/rates.json")
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        "Error: cannot write /nonexistent/rates.json: No such file or directory\n",
    )


def test_an_interpreter_that_does_not_exist_is_refused_before_anything_starts(shell):
    said = shell.fails("start", "--head", "--port=0", RAY_PYTHON="/nonexistent", code=2)
    assert "RAY_PYTHON is '/nonexistent'" in said and "No such file" in said
    assert not shell.processes() and not list(shell.root.glob("session_2*"))
