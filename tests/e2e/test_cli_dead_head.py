"""Every command that asks a cluster, where there is none: nothing listens, packets vanish,
something listens and never answers, the token or the release is another. One line names the
address, what is wrong and what to look at; exit code 1.

That it takes less than 3 s is in the code, not measured here: the connection to a head and its
hello have 2.5 s together where no --timeout is given (connect_us() in
cli/client/state_common.h), an HTTP server twice 1.4 s (probe_http() in
observability/state/over_http.cc). These tests only give up after a generous time.
"""

import contextlib
import os
import socket
import subprocess
import threading

import pytest
import raw_rpc as raw
from cluster import running_dashboard
from shell import BIN
from test_bad_input_wire import WRONG_VERSION
from test_cli_words import COMMANDS
from test_partition import namespaces_work

GENEROUS_S = 30
DRAIN = ["drain-node", "--reason=DRAIN_NODE_REASON_PREEMPTION", "--reason-message=x"]
ASKING = {
    "start": ["start"],
    "status": ["status"],
    "top": ["top", "--iterations=1"],
    "nodes": ["nodes"],
    "cluster-resources": ["cluster-resources"],
    "available-resources": ["available-resources"],
    "list": ["list", "nodes"],
    "get": ["get", "nodes", "0" * 56],
    "summary": ["summary", "tasks"],
    "logs": ["logs"],
    "logs cluster": ["logs", "cluster", "--follow"],
    "logs actor": ["logs", "actor", "--id", "0" * 32],
    "logs worker": ["logs", "worker", "--pid=1"],
    "logs job": ["logs", "job", "--id=x"],
    "logs task": ["logs", "task", "--id", "0" * 48],
    "memory": ["memory"],
    "timeline": ["timeline", "-o", "trace.json"],
    "metrics": ["metrics"],
    "stack": ["stack"],
    "profile": ["profile", "1", "--duration=1"],
    "debug": ["debug"],
    "job submit": ["job", "submit", "--", "true"],
    "job status": ["job", "status", "x"],
    "job logs": ["job", "logs", "x", "--follow"],
    "job list": ["job", "list"],
    "job stop": ["job", "stop", "x"],
    "job delete": ["job", "delete", "x"],
    "train list": ["train", "list"],
    "train show": ["train", "show", "x"],
    "train logs": ["train", "logs", "x"],
    "train profile": ["train", "profile", "x"],
    "train stragglers": ["train", "stragglers", "x"],
    "train tensorboard": ["train", "tensorboard", "x"],
    "kill-actor": ["kill-actor", "--name=x"],
    "drain-node": DRAIN,
    "health-check": ["health-check"],
}
LOCAL = {
    "stop",
    "job",
    "train",
    "microbenchmark",
    "get-auth-token",
    "completion",
    "version",
    "help",
}
OVER_HTTP = [
    "list",
    "get",
    "summary",
    "logs",
    "job submit",
    "job status",
    "job logs",
    "job list",
    "job stop",
    "job delete",
    "train list",
    "train show",
    "train logs",
    "train profile",
    "train stragglers",
]


def words(command, address):
    given = ASKING[command]
    at = given.index("--") if "--" in given else len(given)
    return [*given[:at], f"--address={address}", *given[at:]]


def test_no_command_is_forgotten():
    # A new command belongs in ASKING, or in LOCAL if it asks no cluster. The commands "metrics
    # ..." that other programs answer are checked with "metrics".
    assert {
        command for command in COMMANDS if not command.startswith("metrics ")
    } == ASKING.keys() | LOCAL


def all_fail(shell, commands, address, said, wrapper=(), **env):
    """Runs all commands at the same time. Each must end with one line that has every text of
    `said`."""
    with contextlib.ExitStack() as stack:
        running = {
            command: stack.enter_context(
                subprocess.Popen(
                    [*wrapper, str(BIN / "rayctl"), *words(command, address)],
                    env={**shell.env, **env},
                    cwd=shell.scratch,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            for command in commands
        }
        wrong = {}
        for command, process in running.items():
            try:
                _, errors = process.communicate(timeout=GENEROUS_S)
            except subprocess.TimeoutExpired:
                process.kill()
                errors = "still runs"
            one_line = (
                errors.startswith("Error: ") and errors.count("\n") == 1 and errors.endswith("\n")
            )
            if process.returncode != 1 or not one_line or not all(text in errors for text in said):
                wrong[command] = (process.returncode, errors)
    assert not wrong


@contextlib.contextmanager
def silent_listener(address="127.0.0.1"):
    with socket.create_server((address, 0), backlog=100) as listener:
        yield f"{address}:{listener.getsockname()[1]}"


@contextlib.contextmanager
def answering_listener(answer):
    """Sends `answer` to every client whatever it says, and closes no connection before the end of
    the block. When a test fails, it shows what has become of each connection."""
    with contextlib.ExitStack() as opened:
        # All commands connect at once. If they are more than the backlog, the kernel answers with
        # SYN cookies and may then reset a connection.
        listener = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=128))

        def converse():
            while True:
                try:
                    connection, client = listener.accept()
                except OSError:  # The end of the block has shut the listener down.
                    return
                opened.enter_context(connection)
                try:
                    connection.sendall(answer)
                    outcome = "answered"
                except OSError as error:
                    outcome = str(error)
                print(f"port {client[1]}, descriptor {connection.fileno()}: {outcome}")

        answering = threading.Thread(target=converse)
        answering.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            answering.join()


def test_nothing_listens(shell):
    all_fail(shell, ASKING, "127.0.0.1:1", ["127.0.0.1:1", "Connection refused", "is it started"])


def test_something_listens_and_never_answers(shell):
    with silent_listener() as address:
        all_fail(
            shell,
            ASKING,
            address,
            [address, "no answer to the hello", "something else listens there"],
        )


def test_nothing_listens_over_http(shell):
    all_fail(
        shell,
        OVER_HTTP,
        "http://127.0.0.1:1",
        ["http://127.0.0.1:1", "does not answer", "is the cluster running"],
    )


def test_something_listens_and_never_answers_over_http(shell):
    with silent_listener() as address:
        all_fail(
            shell,
            OVER_HTTP,
            f"http://{address}",
            [address, "does not answer", "is the cluster running"],
        )


@pytest.mark.skipif(not namespaces_work(), reason="network namespaces cannot be made here")
def test_packets_vanish(shell):
    name = f"rt-gone-{os.getpid()}"
    steps = [
        ["netns", "add", name],
        ["-n", name, "link", "add", "nowhere", "type", "veth", "peer", "name", "gone"],
        ["-n", name, "addr", "add", "10.213.9.1/24", "dev", "nowhere"],
        ["-n", name, "link", "set", "lo", "up"],
        ["-n", name, "link", "set", "nowhere", "up"],
        ["-n", name, "link", "set", "gone", "up"],
        # Nobody answers at this address.
        ["-n", name, "neigh", "add", "10.213.9.2", "lladdr", "02:00:00:00:00:01", "dev", "nowhere"],
    ]
    try:
        for step in steps:
            subprocess.run(["ip", *step], check=True)
        wrapper = ["ip", "netns", "exec", name]
        all_fail(
            shell,
            ASKING,
            "10.213.9.2:6379",
            ["10.213.9.2:6379", "no connection", "is the machine up"],
            wrapper,
        )
        all_fail(
            shell,
            OVER_HTTP,
            "http://10.213.9.2:8265",
            ["http://10.213.9.2:8265", "does not answer"],
            wrapper,
        )
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


def test_every_command_says_that_its_token_is_refused(running):
    all_fail(running, ASKING, running.address, ["token"], RAY_AUTH_TOKEN="f" * 64)
    running.ok("health-check")


def test_a_wrong_token_over_http(running):
    address = "http://" + running_dashboard(running)
    all_fail(
        running,
        OVER_HTTP,
        address,
        [address, "Invalid authentication token", "RAY_AUTH_TOKEN"],
        RAY_AUTH_TOKEN="f" * 64,
    )
    all_fail(
        running,
        OVER_HTTP,
        address,
        [address, "Missing authentication token", "RAY_AUTH_TOKEN"],
        RAY_AUTH_MODE="disabled",
    )
    running.ok("list", "nodes", f"--address={address}")


@pytest.mark.alone(
    "Forty commands connect at once. Beside other tests and a compiler, one or two of them were"
    " told that the connection had ended, for a reason that is not known yet."
)
def test_another_protocol_version(shell):
    """A head of another release may refuse our version, or tell us its own one, which we refuse."""
    ours, theirs, remedy = raw.VERSION, raw.VERSION + 1, "install the same release on every machine"
    refusal = f"protocol version {ours} was offered, version {theirs} is spoken here: {remedy}"
    with answering_listener(
        raw.frame(raw.ERROR, raw.field(1, WRONG_VERSION) + raw.field(2, refusal))
    ) as address:
        all_fail(shell, ASKING, address, [f"{address}: {refusal}"])
    with answering_listener(
        raw.frame(raw.HELLO_REPLY, raw.field(1, theirs) + raw.field(3, "head"))
    ) as address:
        all_fail(
            shell,
            ASKING,
            address,
            [
                f"{address}: protocol version {theirs} was offered, version {ours} is spoken here: {remedy}"
            ],
        )
