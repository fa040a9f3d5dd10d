"""A start that is interrupted at any moment leaves nothing after `rayctl stop`: no process, socket
or shared memory, and the next start can listen on the same port.

RT_INTERRUPTED_STARTS is the number of interrupted starts for each signal.
"""

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time

import pytest
from census import leftovers, machine
from cluster import kill, processes_below
from ports import free_port
from shell import Shell
from waiting import eventually, until

TRIES = int(os.environ.get("RT_INTERRUPTED_STARTS", "5"))
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL]
SMALL = ["--num-cpus=1", "--object-store-memory=80000000"]


@pytest.fixture
def shell():
    world = Shell()
    yield world
    world.stop()
    # A failed test has left these processes.
    kill(*processes_below(world.root))


def interrupted(command, shell, number, moment):
    """Starts the command in a session of its own and sends it the signal after `moment` seconds."""
    started = subprocess.Popen(
        command,
        env=shell.env,
        cwd=shell.scratch,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with contextlib.suppress(subprocess.TimeoutExpired):
        started.wait(moment)
    started.send_signal(number)
    return started.wait(timeout=60)


def duration(run):
    """Measures how long a start takes on this machine. The interruptions are spread over this
    time."""
    begin = time.monotonic()
    run()
    return time.monotonic() - begin


def moments(took, number):
    """Yields random moments of a start, each with its description."""
    for turn in range(TRIES):
        moment = random.uniform(0, took)
        yield (
            moment,
            f"turn {turn}: {number.name} after {moment * 1000:.1f} of {took * 1000:.0f} ms",
        )


def assert_nothing_left(shell, before, port, what):
    left = leftovers(shell.root, before)
    assert not left, f"{what}: {left}"
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_after_an_interrupted_start_of_a_head_stop_leaves_nothing(shell, number):
    port = free_port()
    words = ["--head", f"--port={port}", "--dashboard-port=0", *SMALL]
    took = duration(lambda: shell.ok("start", *words))
    shell.ok("stop")
    before = machine(shell.root)
    for moment, what in moments(took, number):
        interrupted(shell.command("start", *words), shell, number, moment)
        said = shell.ok("stop")
        assert_nothing_left(shell, before, port, f"{what}; stop said: {said}")
        assert "Ray runtime started" in shell.ok("start", *words), what
        assert "Stopped all 3 Ray processes" in shell.ok("stop"), what


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_after_an_interrupted_join_stop_leaves_nothing(shell, number):
    port = free_port()
    head = ["--head", f"--port={port}", "--dashboard-port=0", *SMALL]
    before = machine(shell.root)
    shell.ok("start", *head)
    join = [f"--address=127.0.0.1:{port}", *SMALL]
    took = duration(lambda: shell.ok("start", *join))
    for moment, what in moments(took, number):
        interrupted(shell.command("start", *join), shell, number, moment)
        said = shell.ok("stop")
        assert_nothing_left(shell, before, port, f"{what}; stop said: {said}")
        shell.ok("start", *head)
    shell.ok("stop")


def test_stop_waits_for_the_end_of_fork_servers(shell):
    site = shell.scratch / "site"
    site.mkdir()
    # The interpreter of a worker needs a second to end, so that the worker outlives its
    # node-manager.
    (site / "sitecustomize.py").write_text("import atexit, time; atexit.register(time.sleep, 1)")
    shell.env["PYTHONPATH"] = str(site)
    before = machine(shell.root)
    port = free_port()
    for _ in range(3):
        shell.ok("start", "--head", f"--port={port}", "--dashboard-port=0", *SMALL)
        until(
            lambda: any(
                "ray._private.fork_server" in words
                for words in processes_below(shell.root).values()
            )
        )
        shell.ok("stop")
        assert_nothing_left(shell, before, port, "stop")


INIT = "import ray; ray.init(num_cpus=1, object_store_memory=80_000_000, include_dashboard=False)"


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_driver_that_is_killed_in_init_leaves_nothing(shell, number):
    command = [sys.executable, "-c", INIT]
    took = duration(
        lambda: subprocess.run(command, env=shell.env, cwd=shell.scratch, check=True, timeout=60)
    )
    until(lambda: not processes_below(shell.root))
    before = machine(shell.root)
    for moment, what in moments(took, number):
        interrupted(command, shell, number, moment)
        until(lambda: not processes_below(shell.root))
        # A killed driver may have bound sockets that no process has inherited.
        shell.ok("stop")
        left = eventually(lambda: not leftovers(shell.root, before))
        assert left is True, f"{what}: {leftovers(shell.root, before)}"
