"""Nodes on hosts of their own: the address by which each is known, an address at which it cannot be
reached, and a node that is away for a few seconds. The tests use two network namespaces with a
cable between them, which needs root."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import textwrap
import time

import pytest

from cluster import alive, world
from hosts import HEAD, NODE, PORT, Hosts, namespaces_work
from waiting import eventually, touch
from shell import BIN

pytestmark = pytest.mark.skipif(
    not namespaces_work(), reason="network namespaces cannot be made here"
)


@pytest.fixture
def hosts():
    with world() as shell:
        made = Hosts(shell)
        try:
            made.rayctl(
                made.head,
                "start",
                "--head",
                f"--port={PORT}",
                "--num-cpus=1",
                "--object-store-memory=100000000",
                # After a partition of 3 s, TCP may first repeat a report after more than the
                # default of 10 s.
                "--system-config",
                '{"node_timeout_ms": 60000}',
            )
            made.rayctl(
                made.node,
                "start",
                f"--address={HEAD}:{PORT}",
                "--num-cpus=2",
                "--object-store-memory=100000000",
                "--resources",
                '{"there": 1}',
            )
            yield made
        finally:
            shell.run("stop")
            made.remove()


PROGRAM = textwrap.dedent("""
    import os, sys, time, ray
    ray.init(log_to_driver=False)
    @ray.remote(resources={"there": 0.1}, num_cpus=0)
    class Counter:
        n = 0
        def add(self):
            self.n += 1
            return self.n
    @ray.remote(resources={"there": 0.1}, max_retries=3)
    def slow(path):
        with open(path, "a") as runs:
            runs.write("x")
        while not os.path.exists(path + ".gate"):
            time.sleep(0.05)
        return "slept"
    counter = Counter.remote()
    assert ray.get(counter.add.remote()) == 1
    ref = slow.remote(sys.argv[1])
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.01)
    before = {node["NodeID"] for node in ray.nodes()}
    print("ready", flush=True)
    sys.stdin.readline()
    assert ray.get(ref, timeout=60) == "slept"
    assert ray.get(counter.add.remote(), timeout=60) == 2
    assert {node["NodeID"] for node in ray.nodes() if node["Alive"]} == before, ray.nodes()
    assert os.path.getsize(sys.argv[1]) == 1
    print("nothing was lost", flush=True)
""")


def addresses(hosts):
    return sorted(
        node["NodeManagerAddress"]
        for node in json.loads(hosts.rayctl(hosts.head, "nodes", "--format", "json"))
        if node["Alive"]
    )


def test_the_address_is_that_of_the_network_without_a_way_out(hosts):
    assert addresses(hosts) == [HEAD, NODE]


def test_a_node_with_several_networks_is_known_by_the_one_of_the_head(hosts):
    hosts.link("-n", hosts.node, "link", "add", "elsewhere", "type", "veth", "peer", "name", "far")
    hosts.link("-n", hosts.node, "link", "set", "far", "up")
    hosts.link("-n", hosts.node, "addr", "add", "10.213.8.2/24", "dev", "elsewhere")
    hosts.link("-n", hosts.node, "link", "set", "elsewhere", "up")
    hosts.link("-n", hosts.node, "route", "add", "default", "dev", "elsewhere")
    hosts.rayctl(
        hosts.node,
        "start",
        f"--address={HEAD}:{PORT}",
        "--num-cpus=1",
        "--object-store-memory=100000000",
    )
    assert addresses(hosts) == [HEAD, NODE, NODE]


def test_a_node_manager_that_knows_its_head_by_loopback_is_known_by_the_hosts_address(hosts):
    store, session, token = (
        hosts.shell.scratch / name for name in ("store", "alone", ".ray/auth_token")
    )
    started = [
        hosts.on(
            hosts.head,
            BIN / "ray-object-store",
            "--token-file",
            token,
            "--socket",
            store,
            "--memory",
            100_000_000,
        )
    ]
    try:
        assert eventually(store.exists)
        started.append(
            hosts.on(
                hosts.head,
                BIN / "ray-node-manager",
                "--token-file",
                token,
                "--head-address",
                f"127.0.0.1:{PORT}",
                "--session-dir",
                session,
                "--socket",
                hosts.shell.scratch / "raylet",
                "--store-socket",
                store,
                "--resources",
                '{"CPU": 1}',
            )
        )
        assert eventually(lambda: len(addresses(hosts)) == 3)
        assert addresses(hosts) == [HEAD, HEAD, NODE]
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.communicate(timeout=60)


PUBLIC, DOOR = "10.213.7.9", 17805
START = [
    "start",
    f"--address={HEAD}:{PORT}",
    "--num-cpus=1",
    "--object-store-memory=100000000",
    f"--node-manager-port={DOOR}",
]
# Translates the address of one port as a router does: what comes to PUBLIC goes on to the node.
ROUTER = textwrap.dedent("""
    import socket, sys, threading
    def copy(source, target):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    public, node, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    server = socket.create_server((public, port))
    print("ready", flush=True)
    while True:
        outside, _ = server.accept()
        inside = socket.create_connection((node, port))
        for pair in ((outside, inside), (inside, outside)):
            threading.Thread(target=copy, args=pair, daemon=True).start()
""")
ASK_THERE = textwrap.dedent(
    """
    import ray
    ray.init(log_to_driver=False)
    there = ray.remote(resources={"node:%s": 0.1}, num_cpus=0)
    print(ray.get(there(lambda: "x" * 1_000_000).remote(), timeout=60)[:3])
"""
    % PUBLIC
)


def test_a_translated_address_is_used_with_a_warning_while_it_leads_here(hosts):
    refused = hosts.on(hosts.node, *hosts.shell.command(*START, "--node-ip-address", PUBLIC))
    said, _ = refused.communicate(timeout=60)
    assert (
        refused.returncode == 2
        and f"{PUBLIC} is on no interface of this machine" in said
        and f"{NODE} is used" in said
    ), said
    hosts.link("-n", hosts.head, "addr", "add", f"{PUBLIC}/24", "dev", "wire")
    router = hosts.on(hosts.head, sys.executable, "-c", ROUTER, PUBLIC, NODE, DOOR)
    try:
        assert router.stdout.readline() == "ready\n"
        said = hosts.rayctl(hosts.node, *START, "--node-ip-address", PUBLIC)
        assert said.startswith("Warning: ") and f"{PUBLIC}:{DOOR} can be reached" in said, said
        assert addresses(hosts) == [HEAD, NODE, PUBLIC]
        driver = hosts.on(hosts.head, sys.executable, "-c", ASK_THERE)
        assert driver.communicate(timeout=100)[0] == "xxx\n"
    finally:
        router.kill()
        router.communicate(timeout=60)


def test_an_address_the_heads_machine_has_no_way_to_is_refused(hosts):
    hosts.link("-n", hosts.node, "addr", "add", "10.214.0.1/24", "dev", "lo")
    node = hosts.on(hosts.node, *hosts.shell.command(*START, "--node-ip-address", "10.214.0.1"))
    said, _ = node.communicate(timeout=60)
    assert (
        node.returncode == 1
        and f"the head's machine cannot reach it at 10.214.0.1:{DOOR}" in said
        and said.count("Error: ") == 1
    ), said
    assert addresses(hosts) == [HEAD, NODE]


@pytest.mark.parametrize(
    "broken", [False, True], ids=["silent", "with the connection to the head broken"]
)
def test_a_short_partition_loses_nothing(hosts, broken):
    driver = hosts.on(
        hosts.head,
        sys.executable,
        "-c",
        PROGRAM,
        hosts.shell.scratch / "runs",
        stdin=subprocess.PIPE,
    )
    assert driver.stdout.readline() == "ready\n"
    with hosts.unplugged():
        if broken:
            hosts.break_connections_to_head()
        time.sleep(3)
    touch(f"{hosts.shell.scratch}/runs.gate")
    said, _ = driver.communicate("\n", timeout=100)
    assert driver.returncode == 0 and "nothing was lost" in said, said


def test_a_killed_node_manager_on_a_host_that_lives_is_not_waited_for(hosts):
    """The head declares the node dead although node_timeout_ms is an hour here."""
    hosts.rayctl(hosts.head, "stop")
    hosts.rayctl(
        hosts.head,
        "start",
        "--head",
        f"--port={PORT}",
        "--num-cpus=1",
        "--object-store-memory=100000000",
        "--system-config",
        '{"node_timeout_ms": 3600000}',
    )
    hosts.rayctl(
        hosts.node,
        "start",
        f"--address={HEAD}:{PORT}",
        "--num-cpus=2",
        "--object-store-memory=100000000",
    )
    sessions = list(hosts.shell.root.glob("session_2*"))
    daemons = [
        pid
        for pid, line in processes(hosts.shell)
        if "ray-node-manager" in line and f"--node-ip {NODE}" in line
    ]
    assert len(daemons) == 1 and sessions
    os.kill(daemons[0], 9)
    assert eventually(lambda: not alive(daemons[0]))
    assert eventually(
        lambda: "node-manager has ended" in hosts.rayctl(hosts.head, "status"), 60, every=0.2
    ), hosts.rayctl(hosts.head, "status")


def processes(shell):
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"RAY_TMPDIR={shell.root}\0".encode() in (entry / "environ").read_bytes():
                yield (
                    int(entry.name),
                    (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(),
                )
