"""Strangers open more connections than a process has descriptors, and the cluster works on."""

import contextlib
import json
import pathlib
import resource
import subprocess

import pytest

import raw_rpc as raw
from shell import Shell
from ports import free_port
from driver import Driver

DESCRIPTORS = 256
STRANGERS = 2000


@contextlib.contextmanager
def descriptors(limit):
    """Limits the descriptors of this process and of those that it starts in the block."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def small():
    """A head and its node with few descriptors each. The hello limit is so large that strangers
    never reach it."""
    shell = Shell()
    port = free_port()
    words = shell.command(
        "start",
        "--head",
        f"--port={port}",
        "--num-cpus=2",
        "--object-store-memory=100000000",
        "--system-config",
        json.dumps({"hello_timeout_ms": 600_000}),
    )
    subprocess.run(
        [
            "sh",
            "-c",
            f'ulimit -S -n {DESCRIPTORS // 2} && ulimit -H -n {DESCRIPTORS} && exec "$@"',
            "sh",
            *words,
        ],
        env=shell.env,
        cwd=shell.scratch,
        check=True,
        capture_output=True,
        timeout=60,
    )
    record = json.loads(next(shell.root.glob("session_2*/node_*.json")).read_text())
    shell.daemons = {process["name"]: process["pid"] for process in record["processes"]}
    shell.address, shell.door = ("127.0.0.1", port), ("127.0.0.1", record["node_manager_port"])
    yield shell
    shell.stop()


@pytest.mark.parametrize(
    "beginning",
    [b"RAY1 ", raw.preamble(), raw.preamble() + raw.hello("x" * 100)[:-1]],
    ids=["preamble begun", "no hello", "hello begun"],
)
def test_strangers_keep_nobody_out(small, beginning):
    # The head raises the limit of its descriptors as far as it may. What a node starts has the
    # user's own limit.
    for name, limit in (
        ("ray-head", DESCRIPTORS),
        ("ray-node-manager", DESCRIPTORS // 2),
    ):
        assert f"Max open files {limit} {DESCRIPTORS} files" in " ".join(
            pathlib.Path(f"/proc/{small.daemons[name]}/limits").read_text().split()
        )
    driver = Driver(small, RAY_ADDRESS="%s:%d" % small.address)
    with descriptors(STRANGERS * 2 + 500), contextlib.ExitStack() as stack:
        stack.callback(driver.close)
        for listener in (small.address, small.door):
            for _ in range(STRANGERS):
                stranger = stack.enter_context(contextlib.closing(raw.open_socket(listener)))
                with contextlib.suppress(ConnectionError):
                    stranger.sendall(beginning)
        assert "Node" in small.ok("status", "--address", "%s:%d" % small.address)
        assert driver.works()
        for name in ("ray-head", "ray-node-manager"):
            assert (
                len(list(pathlib.Path(f"/proc/{small.daemons[name]}/fd").iterdir()))
                < DESCRIPTORS // 2
            )
