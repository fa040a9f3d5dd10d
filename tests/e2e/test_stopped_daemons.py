"""Each daemon, and a worker, is stopped (SIGSTOP) under load and goes on later. While it is stopped
every command answers, and afterwards every result of the load is right.

By default each is stopped once, for a moment. STOPPED_ROUNDS=10 STOPPED_SECONDS=30 makes the long
run.
"""

import contextlib
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cluster import Cluster, alive, cluster, stopped, world
from shell import BIN
from waiting import touch, until

import ray


ROUNDS = int(os.environ.get("STOPPED_ROUNDS", "1"))
SECONDS = float(os.environ.get("STOPPED_SECONDS", "1"))
TIMEOUT_S = 4
# The pause between two rounds of the load. Short runs leave the processors to the tests that run at
# the same time.
PAUSE_S = 0.1 if SECONDS < 10 else 0
# This is far beyond TIMEOUT_S and only tells whether a command answers at all.
GENEROUS_S = 60
# With these settings nobody is declared dead for being stopped, unless a test wants that.
PATIENT = {"node_timeout_ms": 600_000, "store_hung_after_ms": 500}

LOAD = """
import os, sys, time
import ray

stop, progress = sys.argv[1:]
ray.init(log_to_driver=False)

@ray.remote(max_retries=-1, scheduling_strategy="SPREAD")
def square(x):
    return x * x

@ray.remote(max_retries=-1, scheduling_strategy="SPREAD")
def blob(x):
    return bytes([x % 256]) * 300_000

@ray.remote
class Counter:
    def __init__(self):
        self.n = 0
    def add(self):
        self.n += 1
        return self.n

counter, counted, rounds = Counter.remote(), 0, 0
while not os.path.exists(stop):
    squares = [square.remote(i) for i in range(50)]
    blobs = [blob.remote(i) for i in range(4)] if LARGE else []
    calls = [counter.add.remote() for _ in range(20)]
    put = ray.put(bytes([rounds % 256]) * 200_000)
    assert ray.get(squares) == [i * i for i in range(50)]
    assert all(ray.get(ref) == bytes([i]) * 300_000 for i, ref in enumerate(blobs))
    assert ray.get(calls) == list(range(counted + 1, counted + 21))
    assert ray.get(put) == bytes([rounds % 256]) * 200_000
    counted += 20
    rounds += 1
    with open(progress + ".new", "w") as file:
        file.write(str(rounds))
    os.replace(progress + ".new", progress)
    time.sleep(PAUSE_S)
print("rounds that were right:", rounds)
"""

ASKING = [
    ["status"],
    ["nodes"],
    ["health-check"],
    ["health-check", "--component=nodes"],
    ["list", "nodes"],
    ["list", "tasks", f"--timeout={TIMEOUT_S}"],
    ["summary", "tasks", f"--timeout={TIMEOUT_S}"],
    ["list", "objects", f"--timeout={TIMEOUT_S}"],
    ["list", "workers", f"--timeout={TIMEOUT_S}"],
    ["memory", f"--timeout={TIMEOUT_S}"],
    ["stack", "--no-native", f"--timeout={TIMEOUT_S}"],
    ["debug", f"--timeout={TIMEOUT_S}"],
    ["metrics", f"--timeout={TIMEOUT_S}"],
    ["timeline", "-o", "trace.json", f"--timeout={TIMEOUT_S}"],
    ["job", "list", f"--timeout={TIMEOUT_S}"],
    ["top", "--iterations=1", f"--timeout={TIMEOUT_S}"],
]


class Load:
    """A program that runs tasks, calls an actor and stores objects on all nodes, and compares every
    result."""

    def __init__(self, c, name, large=True):
        self.stop_file, self.progress = c.shell.scratch / f"{name}.stop", c.shell.scratch / name
        program = LOAD.replace("LARGE", str(large)).replace("PAUSE_S", str(PAUSE_S))
        self.process = c.program(program, self.stop_file, self.progress)

    def rounds(self):
        assert self.process.poll() is None, self.process.communicate()[0]
        with contextlib.suppress(FileNotFoundError):
            return int(self.progress.read_text())
        return 0

    def await_more(self, more=2):
        wanted = self.rounds() + more
        until(lambda: self.rounds() >= wanted, seconds=180)

    def end(self):
        touch(self.stop_file)
        said, _ = self.process.communicate(timeout=180)
        assert self.process.returncode == 0 and "rounds that were right" in said, said


@contextlib.contextmanager
def loaded(c, **how):
    load = Load(c, "load", **how)
    try:
        load.await_more(1)
        yield load
        load.end()
    finally:
        load.process.kill()
        load.process.wait()


def ask_everything(c, until_s, head_hangs=False):
    """Runs every command once, and again until the time is over. No command hangs. Only a head that
    hangs lets commands fail, since nobody else can answer them."""
    answers = {}
    while True:
        for words in ASKING:
            done = c.shell.run(*words, f"--address={c.address}", timeout=GENEROUS_S)
            answers[" ".join(words[:2])] = done
            if words[0] == "health-check":
                # health-check may fail: it reports what it sees.
                continue
            if head_hangs:
                assert done.returncode == 1 and c.address in done.stderr, (words, done)
            else:
                assert done.returncode == 0, (words, done)
        if time.monotonic() >= until_s:
            return answers


def stop_again_and_again(c, load, pid_of, head_hangs=False):
    """Returns the last answers of the commands, by their first two words."""
    for round_number in range(ROUNDS):
        with stopped(pid_of(round_number)):
            answers = ask_everything(c, time.monotonic() + SECONDS, head_hangs)
        load.await_more()
    return answers


@pytest.fixture
def two_nodes():
    with cluster(settings=PATIENT) as c:
        c.second = c.join()
        c.await_nodes(2)
        yield c
        # Nobody was declared dead.
        c.await_nodes(2)


def test_a_head_that_was_stopped_under_load(two_nodes):
    c = two_nodes
    with loaded(c) as load:
        stop_again_and_again(c, load, lambda _: c.pid(c.head_node, "ray-head"), head_hangs=True)


@pytest.mark.parametrize("where", ["head_node", "second"])
@pytest.mark.parametrize("program", ["ray-node-manager", "ray-object-store"])
def test_a_daemon_that_was_stopped_under_load(two_nodes, program, where):
    c = two_nodes
    session = getattr(c, where)
    with loaded(c) as load:
        answers = stop_again_and_again(c, load, lambda _: c.pid(session, program))
    asked = "list tasks" if program == "ray-node-manager" else f"memory --timeout={TIMEOUT_S}"
    assert c.node_id(session)[:8] in answers[asked].stderr, "what is missing is a warning"


def test_a_worker_that_was_stopped_under_load(two_nodes):
    c = two_nodes

    def one_of_them(round_number):
        rows = json.loads(c.shell.ok("list", "workers", f"--address={c.address}", "--format=json"))
        pids = [row["pid"] for row in rows if row["is_alive"] and row["worker_type"] == "WORKER"]
        return pids[round_number % len(pids)]

    with loaded(c) as load:
        stop_again_and_again(c, load, one_of_them)


def test_a_head_that_was_stopped_for_longer_than_nodes_may_be_silent():
    """The nodes live on: it was the head that heard nothing."""
    # Nodes report every 500 ms. This is much longer, because they are late on a busy machine.
    with cluster(settings={"node_timeout_ms": 4_000}) as c:
        c.join()
        c.await_nodes(2)
        with loaded(c) as load:
            for _ in range(ROUNDS):
                with stopped(c.pid(c.head_node, "ray-head")):
                    ask_everything(c, time.monotonic() + max(SECONDS, 5), head_hangs=True)
                load.await_more()
        c.await_nodes(2)


def test_a_node_that_is_declared_dead_while_it_is_stopped():
    """The node's tasks run elsewhere, and once the node goes on it ends."""
    # With a shorter time, nodes that report late on a busy machine would be declared dead, too.
    with cluster(settings={"node_timeout_ms": 5_000}) as c:
        with loaded(c, large=False) as load:
            for _ in range(ROUNDS):
                second = c.join()
                c.await_nodes(2)
                load.await_more()
                with stopped(c.pid(second, "ray-node-manager")):
                    c.await_nodes(1, seconds=GENEROUS_S)
                    load.await_more()
                until(lambda: not alive(c.pid(second, "ray-node-manager")))


@pytest.mark.parametrize(
    ("program", "node_timeout_ms", "attempts"),
    [
        ("ray-node-manager", 600_000, 3),
        # The node of a store that hangs lives on: its object stays, although the attempts take
        # longer than this.
        ("ray-object-store", 4_000, 6),
    ],
)
def test_an_object_of_a_daemon_that_hangs_is_read_once_it_goes_on(
    program, node_timeout_ms, attempts
):
    """Attempts to connect end without an answer. Since the node lives, nothing is lost."""
    with world() as shell:
        # Only the stores give up an attempt so soon. A node-manager with this setting would end
        # when its store first runs more than a second late, as it may on a busy machine.
        store = shell.scratch / "ray-object-store"
        store.write_text(f'#!/bin/sh\nexec "{BIN / store.name}" "$@" --connect-timeout-ms=1000\n')
        store.chmod(0o755)
        shell.env["RAY_BIN"] = str(shell.scratch)
        c = Cluster(shell, settings={"node_timeout_ms": node_timeout_ms})
        ray.init(address=c.address, log_to_driver=False)
        second = c.join(resources={"second": 1})
        c.await_nodes(2)

        @ray.remote(resources={"second": 1})
        def blob():
            return b"1" * 1_000_000

        ref = blob.remote()
        ray.wait([ref], fetch_local=False)
        log = Path(c.head_node).parent / "logs" / "object-store.log"
        with ThreadPoolExecutor() as pool:
            with stopped(c.pid(second, program)):
                value = pool.submit(ray.get, ref)
                until(
                    lambda: value.done() or log.read_text().count("does not deliver it") >= attempts
                )
            assert value.result(GENEROUS_S) == b"1" * 1_000_000
