"""Daemons that are stopped (SIGSTOP) and neither answer nor end: every command answers within its
time-out with what it knows, and names what does not answer."""

import contextlib
import json
import os
import signal

import pytest
from cluster import cluster

import ray

TIMEOUT_S = 5
GENEROUS_S = 60  # far beyond TIMEOUT_S: it only tells an answer from none
PATIENT = {"node_timeout_ms": 600_000}  # the head does not declare what is stopped here dead


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@ray.remote
def on_a_node():
    return ray.get_runtime_context().get_node_id()


@pytest.fixture(scope="module")
def hung_node():
    """A cluster of two nodes whose second node-manager is stopped, after a task on each node."""
    with cluster(settings=PATIENT) as c:
        c.second = c.join(resources={"second": 1})
        c.await_nodes(2)
        assert ray.get(on_a_node.remote()) == c.node_id(c.head_node)
        c.hung_id = ray.get(on_a_node.options(resources={"second": 1}).remote())
        c.object = ray.put(b"1" * 1_000_000)
        with stopped(c.pid(c.second, "ray-node-manager")):
            yield c


# Commands that ask every node.
STATE = {
    "list tasks": ["list", "tasks"],
    "list objects": ["list", "objects"],
    "list workers": ["list", "workers"],
    "list runtime-envs": ["list", "runtime-envs"],
    "get workers": ["get", "workers", "0" * 56],
    "summary tasks": ["summary", "tasks"],
    "summary objects": ["summary", "objects"],
    "memory": ["memory"],
    "memory --stats-only": ["memory", "--stats-only"],
    "stack": ["stack"],
    "profile": ["profile", "all", "--duration=0.1"],
    "debug": ["debug"],
    "metrics": ["metrics"],
}


@pytest.mark.parametrize("command", STATE)
def test_a_hung_node_is_a_warning(hung_node, command):
    c = hung_node
    done = c.shell.run(
        *STATE[command], f"--timeout={TIMEOUT_S}", f"--address={c.address}", timeout=GENEROUS_S
    )
    assert done.returncode == 0, done.stderr
    assert "Warning: " in done.stderr and c.hung_id[:8] in done.stderr, done.stderr
