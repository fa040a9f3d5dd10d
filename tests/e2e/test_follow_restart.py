"""A log is followed while the head restarts: the follower waits for the head, and gets every line
exactly once."""

import contextlib
import os
import re
import signal
import subprocess

import pytest
from cluster import cluster, running_dashboard
from waiting import eventually
from ports import free_port

import ray


@pytest.fixture
def restarting():
    """A cluster whose HTTP interface has the same address after a restart of the head."""
    with cluster(cpus=2, dashboard_port=free_port()) as c:
        yield c


def restart(c, **env):
    c.shell.ok(
        "start",
        "--head",
        f"--port={c.port}",
        f"--dashboard-port={c.http.rpartition(':')[2]}",
        **env,
    )


@contextlib.contextmanager
def following(c, *words, **env):
    process = subprocess.Popen(
        c.shell.command(*words),
        env={**c.shell.env, **env},
        cwd=c.shell.scratch,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def heard(process, last):
    """Returns the numbers of the lines that a follower prints, up to `last`."""
    numbers = []
    while not numbers or numbers[-1] != last:
        line = process.stdout.readline()
        assert line, (process.wait(), process.stderr.read())
        if found := re.search(r"line (\d+)$", line):
            numbers.append(int(found[1]))
    return numbers


@ray.remote(num_cpus=0)
class Counting:
    def say(self, first, last):
        for number in range(first, last + 1):
            print("line", number, flush=True)


def is_waiting(process, address):
    line = process.stderr.readline()
    assert (
        line.startswith(f"Lost the head at {address} (")
        and "waiting up to" in line
        and line.count("\n") == 1
    ), line


FOLLOWING = {
    "every node": ["logs", "worker-*.out", "--tail=-1"],
    "one file": ["logs", "actor", "--id={actor}"],
    "a task": ["logs", "task", "--id={task}"],
    "over HTTP": ["logs", "actor", "--id={actor}", "--address={http}"],
    "a task over HTTP": ["logs", "task", "--id={task}", "--address={http}"],
    "markers over HTTP": ["logs", "actor", "--id={actor}", "--raw", "--address={http}"],
}


def test_logs_go_on_where_they_were(restarting):
    c = restarting
    c.http = running_dashboard(c.shell, c.address)

    @ray.remote(num_cpus=0)
    class Talks:
        async def talk(self, go):
            for last in (100, 200, 300):
                while not os.path.exists(f"{go}{last}"):
                    import asyncio

                    await asyncio.sleep(0.02)
                for number in range(last - 99, last + 1):
                    print("line", number, flush=True)

    actor = Talks.remote()
    go = c.shell.scratch / "go"
    task = actor.talk.remote(str(go))
    names = {
        "actor": actor._actor_id.hex(),
        "task": task.task_id().hex(),
        "http": f"http://{c.http}",
    }
    (c.shell.scratch / "go100").touch()
    assert eventually(
        lambda: (
            "line 100\n"
            in c.shell.run("logs", "task", f"--id={names['task']}", RAY_ADDRESS=c.address).stdout
        ),
        30,
    )
    with contextlib.ExitStack() as stack:
        processes = {
            name: stack.enter_context(
                following(
                    c,
                    *[word.format(**names) for word in words],
                    "--follow",
                    "--interval=0.05",
                    RAY_ADDRESS=c.address,
                )
            )
            for name, words in FOLLOWING.items()
        }
        for name, process in processes.items():
            assert heard(process, 100) == list(range(1, 101)), name
        c.kill(c.head_node, "ray-head")
        is_waiting(processes["every node"], c.address)
        for name in ("over HTTP", "a task over HTTP", "markers over HTTP"):
            is_waiting(processes[name], f"http://{c.http}")
        # This happens while the head is away.
        (c.shell.scratch / "go200").touch()
        restart(c)
        (c.shell.scratch / "go300").touch()
        for name, process in processes.items():
            assert heard(process, 300) == list(range(101, 301)), name
            assert process.poll() is None, name
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=120) == -signal.SIGINT and process.stderr.read() == "", name


def test_jobs_go_on_where_they_were(restarting):
    c = restarting
    c.http = running_dashboard(c.shell, c.address)
    go = c.shell.scratch / "go"
    program = f"for last in 100 200; do while [ ! -e {go}$last ]; do sleep 0.02; done; i=$((last - 99)); while [ $i -le $last ]; do echo line $i; i=$((i + 1)); done; done; exit 3"
    c.shell.ok(
        "job",
        "submit",
        "--submission-id=talks",
        "--no-wait",
        "--",
        "sh",
        "-c",
        program,
        RAY_ADDRESS=c.address,
    )
    (c.shell.scratch / "go100").touch()
    with contextlib.ExitStack() as stack:
        processes = {
            address: stack.enter_context(
                following(c, "job", "logs", "--follow", "talks", RAY_ADDRESS=address)
            )
            for address in (c.address, f"http://{c.http}")
        }
        for process in processes.values():
            assert heard(process, 100) == list(range(1, 101))
        c.kill(c.head_node, "ray-head")
        for address, process in processes.items():
            is_waiting(process, address)
        (c.shell.scratch / "go200").touch()
        restart(c)
        for address, process in processes.items():
            assert heard(process, 200) == list(range(101, 201))
            rest, errors = process.stdout.read(), process.stderr.read()
            assert (
                process.wait(timeout=60) == 0
                and rest.partition("Job 'talks' failed")[0].strip(" -\n") == ""
                and "Job 'talks' failed" in rest
                and errors == ""
            ), (address, rest, errors)


def test_how_the_waiting_ends(restarting):
    """The waiting ends at once with Ctrl-C, when it has taken too long, and when the next head is a
    different one."""
    c = restarting
    c.http = running_dashboard(c.shell, c.address)
    c.shell.ok(
        "job",
        "submit",
        "--submission-id=sleeps",
        "--no-wait",
        "--",
        "sh",
        "-c",
        "echo line 1; sleep 1000",
        RAY_ADDRESS=c.address,
    )
    counting = Counting.remote()
    ray.get(counting.say.remote(1, 1))
    commands = [
        ["logs", "worker-*.out", "--follow", "--tail=-1"],
        [
            "logs",
            "actor",
            f"--id={counting._actor_id.hex()}",
            f"--address=http://{c.http}",
            "--follow",
        ],
        ["job", "logs", "--follow", "sleeps"],
    ]
    short = {"RAY_ADDRESS": c.address, "RAY_head_reconnect_timeout_ms": "600"}
    with contextlib.ExitStack() as stack:
        impatient = [stack.enter_context(following(c, *words, **short)) for words in commands]
        interrupted = [
            stack.enter_context(following(c, *words, RAY_ADDRESS=c.address)) for words in commands
        ]
        refused = [
            stack.enter_context(following(c, *words, RAY_ADDRESS=c.address)) for words in commands
        ]
        for process in impatient + interrupted + refused:
            assert heard(process, 1) == [1]
        c.kill(c.head_node, "ray-head")
        for process in impatient:
            assert process.wait(timeout=60) == 1
            first, last = process.stderr.read().splitlines()
            assert (
                first.startswith("Lost the head at")
                and last.startswith("Error: 0.6 s after the head at")
                and "head_reconnect_timeout_ms" in last
            ), (first, last)
        for process in interrupted:
            assert process.stderr.readline().startswith("Lost the head at")
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=120) == -signal.SIGINT and process.stderr.read() == ""
        ray.shutdown()
        c.shell.ok("stop")
        for session in c.shell.root.glob("session_2*"):
            session.rename(session.with_name("of_before" + session.name))
        other = {"RAY_AUTH_TOKEN": "f" * 64}
        restart(c, **other)
        try:
            for process in refused:
                assert process.wait(timeout=60) == 1
                first, last = [
                    line
                    for line in process.stderr.read().splitlines()
                    if not line.startswith("Warning: cannot read the logs of node")
                ]
                assert (
                    first.startswith("Lost the head at")
                    and last.startswith("Error: ")
                    and "token" in last
                ), (first, last)
        finally:
            c.shell.run("stop", **other)


def test_a_job_that_is_no_longer_there(restarting):
    c = restarting
    c.http = running_dashboard(c.shell, c.address)
    ray.shutdown()
    c.shell.ok(
        "job",
        "submit",
        "--submission-id=sleeps",
        "--no-wait",
        "--",
        "sh",
        "-c",
        "echo line 1; sleep 1000",
        RAY_ADDRESS=c.address,
    )
    with (
        following(c, "job", "logs", "--follow", "sleeps", RAY_ADDRESS=c.address) as rpc,
        following(c, "job", "logs", "--follow", "sleeps", RAY_ADDRESS=f"http://{c.http}") as http,
    ):
        assert heard(rpc, 1) == heard(http, 1) == [1]
        c.kill(c.head_node, "ray-head")
        is_waiting(rpc, c.address)
        is_waiting(http, f"http://{c.http}")
        c.shell.ok("stop")
        restart(c)
        for process in (rpc, http):
            assert process.wait(timeout=60) == 1
            said = process.stderr.read()
            assert (
                said.startswith("Error: ")
                and said.count("\n") == 1
                and "sleeps does not exist" in said
            ), said
    assert eventually(lambda: c.shell.run("health-check", RAY_ADDRESS=c.address).returncode == 0)
