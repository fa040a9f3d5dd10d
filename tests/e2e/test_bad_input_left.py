"""Clusters that were killed, and files that were damaged, mislead nobody."""

import contextlib
import json
import os
import subprocess
import pytest
from failing_program import init_fails
from cluster import kill
from shell import BIN
from ports import free_port
from waiting import eventually
from driver import Driver


def test_a_cluster_that_was_killed_misleads_nobody(shell):
    port = free_port()
    shell.ok("start", "--head", f"--port={port}", "--num-cpus=1")
    record = json.loads(next(shell.root.glob("session_2*/node_*.json")).read_text())
    kill(*(process["pid"] for process in record["processes"]))
    assert eventually(lambda: not shell.processes())
    assert (shell.root / "ray_current_cluster").read_text().strip() == f"127.0.0.1:{port}"
    said = init_fails(shell, "'auto'")
    assert (
        said.startswith("ConnectionError")
        and "ray_current_cluster" in said
        and f"`rayctl start --head --port={port}`" in said
    )
    said = init_fails(shell, RAY_ADDRESS=f"127.0.0.1:{port}")
    assert said.startswith("ConnectionError") and "RAY_ADDRESS" in said
    assert "has ended" in shell.fails("status")
    # A private cluster of its own must start.
    with contextlib.closing(Driver(shell, "ray.init(num_cpus=1)")) as alone:
        assert alone.works()
    shell.ok("start", "--head", f"--port={port}", "--num-cpus=1")
    with contextlib.closing(Driver(shell, "ray.init()")) as joined:
        assert (
            joined.works()
            and joined.run("ray.get_runtime_context().gcs_address") == f"127.0.0.1:{port}"
        )
    shell.ok("stop")
    assert not list(shell.root.glob("session_2*/sockets/*"))


def test_a_head_without_a_node_here_names_one_remedy(shell):
    shell.env["RAY_AUTH_TOKEN"] = "0" * 64
    port = free_port()
    with subprocess.Popen(
        [BIN / "ray-head", "--port", str(port), "--host", "127.0.0.1", "--dashboard-port", "0"]
        + ["--session-dir", shell.scratch / "alone"],
        env=shell.env,
    ) as head:
        try:
            assert eventually(
                lambda: shell.run("status", f"--address=127.0.0.1:{port}").returncode == 0
            )
            said = init_fails(shell, f"'127.0.0.1:{port}'")
            assert said.startswith("ConnectionError") and said.endswith(
                f"start one with `rayctl start --address=127.0.0.1:{port}`"
            )
            # Without a node, nothing can run: the job and what waits for it name the remedy.
            remedy = "no node is alive: start one with `rayctl start --address="
            where = f"--address=127.0.0.1:{port}"
            shell.ok("job", "submit", where, "--no-wait", "--submission-id=j1", "--", "true")
            assert eventually(lambda: remedy in shell.ok("job", "status", where, "j1"))
            line = f"1x job j1 {{}}\n    {remedy}127.0.0.1:{port}`\n"
            assert eventually(lambda: line in shell.ok("debug", where))
            # A command that follows the job says so, too.
            with subprocess.Popen(
                [BIN / "rayctl", "job", "logs", where, "--follow", "j1"],
                env=shell.env,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            ) as following:
                try:
                    assert remedy in following.stderr.readline()
                finally:
                    following.kill()
        finally:
            head.terminate()


def test_an_address_file_of_nonsense(shell):
    shell.root.mkdir()
    (shell.root / "ray_current_cluster").write_text("\0nonsense\n" * 100)
    shell.fails("status")
    with contextlib.closing(Driver(shell, "ray.init(num_cpus=1)")) as alone:
        assert alone.works()


def test_a_long_temp_root(shell):
    """The temp root is longer than the path of a Unix socket may be."""
    root = shell.scratch / ("long" * 30)
    shell.env["RAY_TMPDIR"] = str(root)
    shell.ok("start", "--head", "--port=0", "--num-cpus=2")
    with contextlib.closing(Driver(shell, "ray.init()")) as driver:
        assert driver.works()
    assert "through" in shell.ok("job", "submit", "--", "echo", "through")
    shell.ok("stop")


@pytest.mark.parametrize(
    "file, what", [("head.sqlite", "the head's state"), ("history.sqlite", "the task history")]
)
@pytest.mark.parametrize("damage", ["replaced", "inside"])
def test_damaged_state(shell, file, what, damage):
    state = shell.scratch / "state"
    env = {**shell.env, "RAY_AUTH_TOKEN": "x"}

    def head():
        return subprocess.Popen(
            [BIN / "ray-head", "--port", "0", "--host", "127.0.0.1", "--state-dir", state],
            env=env,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run_until_ready():
        process = head()
        for line in process.stderr:
            if "incarnation" in line:
                break
        process.terminate()
        process.communicate(timeout=120)
        return process.returncode

    assert run_until_ready() == 0
    before = (state / file).read_bytes()
    (state / file).write_bytes(
        os.urandom(len(before))
        if damage == "replaced"
        else before[:4096] + os.urandom(len(before) - 4096)
    )
    process = head()
    said = process.communicate(timeout=120)[1]
    assert (
        process.returncode == 1
        and f"{what} in {state}/{file} is damaged" in said
        and "Move the file away" in said
        and said.count("damaged") == 1
    )
    (state / file).rename(state / "aside")
    assert run_until_ready() == 0
