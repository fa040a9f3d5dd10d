"""An object store is stopped (SIGSTOP), so that it neither answers nor ends. Its node-manager
notices, and everyone who asks is told which process hangs, since when, and what to do."""

import json

import pytest
from cluster import cluster, stopped
from http_api import Api
from waiting import until

import ray

# A store that merely waits for a processor must not be taken for one that hangs.
QUICK = {"store_hung_after_ms": 2000}


@pytest.fixture(scope="module")
def hung_store():
    with cluster(connect=False, settings=QUICK) as c:
        c.store = c.pid(c.head_node, "ray-object-store")
        c.hang = f"its object store (process {c.store}) has not answered since "
        with stopped(c.store):
            until(lambda: c.hang in c.shell.run("health-check", "--address", c.address).stderr)
            yield c


def test_health_check_and_status_tell_of_a_hung_store(hung_store):
    c = hung_store
    for component in ("head", "nodes"):
        told = c.shell.fails("health-check", f"--component={component}", f"--address={c.address}")
        assert c.hang in told and f"kill -CONT {c.store}" in told
    for command in ("status", "debug"):
        assert c.hang in c.shell.ok(command, f"--address={c.address}")
    (told,) = json.loads(c.shell.ok("status", f"--address={c.address}", "--format=json"))[
        "node_problems"
    ]
    assert told["node_id"] == c.node_id(c.head_node) and c.hang in told["problem"]
    rows = json.loads(c.shell.ok("list", "nodes", f"--address={c.address}", "--format=json"))
    assert c.hang in rows[0]["state_message"]


def test_the_http_interface_tells_of_a_hung_store(hung_store):
    api = Api.of(hung_store.shell, hung_store.output)

    def text(path, **how):
        status, _, body = api.request("GET", path, **how)
        return status, body.decode()

    assert text("/api/gcs_healthz", token=False) == (200, "success")
    status, said = text("/api/healthz", token=False)
    assert status == 503 and "raylet" in said
    status, metrics = text("/metrics")
    assert status == 200
    (line,) = [
        line
        for line in metrics.splitlines()
        if line.startswith("ray_cluster_impaired_nodes") and 'node_type="head"' in line
    ]
    assert float(line.rsplit(" ", 1)[1]) == 1
    (node,) = api.ok("/nodes", {"view": "summary"})["summary"]
    assert hung_store.hang in node["raylet"]["stateMessage"]
    assert node["raylet"]["objectStoreUsedMemory"] is None


def test_what_a_hung_store_holds_is_unknown_not_zero(hung_store):
    c = hung_store
    done = c.shell.run("memory", "--stats-only", "--timeout=20", f"--address={c.address}")
    assert "usage unknown" in done.stdout and "0 MiB" not in done.stdout
    assert "Warning: " in done.stderr and c.node_id(c.head_node)[:8] in done.stderr


def test_a_driver_that_starts_is_told_which_store_hangs(hung_store):
    c = hung_store
    driver = c.program("import ray; ray.init()")
    said, _ = driver.communicate(timeout=120)
    assert driver.returncode == 1
    assert f"cannot use this node: {c.hang}" in said and f"kill -CONT {c.store}" in said, said


def test_a_store_that_goes_on_is_told_and_has_lost_nothing():
    with cluster(settings=QUICK) as c:
        large = ray.put(b"1" * 1_000_000)
        address = ["--address", c.address]
        with stopped(c.pid(c.head_node, "ray-object-store")):
            until(lambda: c.shell.run("health-check", *address).returncode == 1)
        until(lambda: c.shell.run("health-check", *address).returncode == 0)
        until(lambda: c.shell.ok("status", *address), lambda said: "Warning" not in said)
        assert ray.get(ray.remote(len).remote(large)) == 1_000_000
