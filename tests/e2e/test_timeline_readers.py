"""Clients ask for the timeline and read it slowly or not at all. The head counts them, and holds
little for each."""

import pathlib
import socket

import pytest
from cluster import Cluster, world
from waiting import eventually
from http_api import Api

import ray

# These make 24 MB of trace, which is more than the sockets in between take.
TASKS = 20_000
MOST_TIMELINES, MOST_QUESTIONS = 8, 10


@pytest.fixture(scope="module")
def busy():
    with world() as shell:
        shell.env["RAY_STATE_SERVER_MAX_HTTP_REQUEST"] = str(MOST_QUESTIONS)
        cluster = Cluster(shell, dashboard_port=0)
        cluster.api = Api.of(shell, cluster.output)
        ray.init(address=cluster.address, log_to_driver=False)

        @ray.remote
        def counted(number):
            return number

        assert len(ray.get([counted.remote(number) for number in range(TASKS)])) == TASKS
        assert eventually(lambda: cluster.api.rows("tasks", limit=1)["total"] >= TASKS)
        yield cluster


def stalled(api, path):
    """Returns a connection that has asked for `path` and reads nothing yet."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(60)
    host, port = api.address.rsplit(":", 1)
    connection.connect((host, int(port)))
    connection.sendall(
        f"GET {path} HTTP/1.1\r\nHost: {api.address}\r\nAuthorization: Bearer {api.token}\r\n\r\n".encode()
    )
    return connection


def status(connection):
    return int(connection.recv(12).split()[1])


def memory_kb(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def fills_up(api, readers):
    """Asks one more question that takes long; returns whether all places are taken. The caller
    repeats this, because the question that looks may itself have held the last place, so that the
    long one was refused."""
    readers.append(stalled(api, "/api/v0/delay/600"))
    return api.get("/api/v0/nodes")[0] == 429


def test_slow_readers_are_counted_and_cost_little(busy):
    head = busy.pid(busy.head_node, "ray-head")
    assert busy.api.request("GET", "/api/v0/tasks/timeline")[2].rstrip().endswith(b"]")
    before = memory_kb(head)
    readers = [stalled(busy.api, "/api/v0/tasks/timeline") for _ in range(MOST_TIMELINES)]
    assert [status(reader) for reader in readers] == [200] * MOST_TIMELINES
    refused, answer = busy.api.get("/api/v0/tasks/timeline")
    assert refused == 429 and f"{MOST_TIMELINES} simultaneous timelines" in answer["msg"]
    assert busy.api.get("/api/v0/nodes")[0] == 200
    assert memory_kb(head) - before < MOST_TIMELINES * 4096
    # A timeline counts as a question, too.
    assert eventually(lambda: fills_up(busy.api, readers))
    assert len(readers) >= MOST_QUESTIONS
    for reader in readers:
        reader.close()
    assert eventually(lambda: busy.api.request("GET", "/api/v0/tasks/timeline")[0] == 200)
    assert eventually(lambda: busy.api.get("/api/v0/nodes")[0] == 200)
