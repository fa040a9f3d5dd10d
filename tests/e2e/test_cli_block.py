"""`rayctl start --block`: ends its node with the signal that ends it, says which daemon has died,
and ignores the signals that it was told to ignore."""

import contextlib
import json
import os
import signal
import subprocess

import pytest
from cluster import alive, stopped
from waiting import eventually, until


@contextlib.contextmanager
def blocking(shell, ignored=None):
    """Starts a head with --block, which ignores the signal `ignored` from the beginning, as after
    `nohup`."""

    def prepare():
        if ignored is not None:
            signal.signal(ignored, signal.SIG_IGN)

    process = subprocess.Popen(
        shell.command("start", "--head", "--port=0", "--num-cpus=1", "--block"),
        env=shell.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=prepare,
    )
    try:
        for line in process.stdout:
            if line.startswith("--block"):
                break
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate(timeout=60)


def pid_of(shell, name):
    record = json.loads(next(shell.root.glob("session_2*/node_*.json")).read_text())
    return next(p["pid"] for p in record["processes"] if p["name"] == name)


def test_block_ends_its_node_with_the_signal(shell):
    with blocking(shell) as process:
        shell.ok("health-check")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGTERM
    assert eventually(lambda: not shell.processes()), shell.processes()


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_block_ignores_what_was_ignored_when_it_began(shell, number):
    with blocking(shell, ignored=number) as process:
        process.send_signal(number)
        assert "Active:" in shell.ok("status")
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
        assert process.returncode == -signal.SIGTERM
        assert f"Signal {signal.SIGTERM.value}: the node ends." in out
    assert eventually(lambda: not shell.processes()), shell.processes()


@pytest.mark.parametrize(
    "name, ignored", [("ray-head", None), ("ray-object-store", signal.SIGCHLD)]
)
def test_block_reports_a_daemon_that_dies(shell, name, ignored):
    with blocking(shell, ignored=ignored) as process:
        os.kill(pid_of(shell, name), signal.SIGKILL)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 1 and f"{name} was killed by signal 9" in errors
    assert eventually(lambda: not shell.processes()), shell.processes()
    assert name in next(shell.root.glob("session_2*/logs/ray_process_exit.log")).read_text()


def test_block_names_the_daemon_that_was_killed_not_those_that_ended_with_it(shell):
    with blocking(shell) as process:
        node_manager = pid_of(shell, "ray-node-manager")
        # Both ends are there when the command looks next.
        with stopped(process.pid):
            os.kill(pid_of(shell, "ray-object-store"), signal.SIGKILL)
            until(lambda: not alive(node_manager))
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 1 and "ray-object-store was killed by signal 9" in errors
