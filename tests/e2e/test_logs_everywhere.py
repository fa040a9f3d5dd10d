"""Logs of every node, read over HTTP, by rayctl and by ray.util.state: logs of daemons, workers,
actors, tasks and jobs."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time

import pytest
from cluster import Cluster, alive, world
from waiting import eventually
from http_api import Api

import ray
from ray.util import state


@ray.remote
class Speaker:
    def say(self, text):
        print(text)
        return ray.get_runtime_context().get_task_id()


@pytest.fixture(scope="module")
def two():
    """A head and another node, each with an actor that has written something."""
    with world() as shell:
        cluster = Cluster(shell, dashboard_port=0)
        cluster.api = Api.of(shell, cluster.output)
        cluster.other = cluster.join(resources={"other": 2})
        ray.init(address=cluster.address, log_to_driver=False)
        cluster.await_nodes(2)
        cluster.near, cluster.far = (
            Speaker.options(num_cpus=0).remote(),
            Speaker.options(num_cpus=0, resources={"other": 1}).remote(),
        )
        cluster.tasks = ray.get(
            [cluster.near.say.remote("near hello"), cluster.far.say.remote("far hello")]
        )
        yield cluster


def text_of(cluster, path="/api/v0/logs/file", **query):
    status, _, body = cluster.api.request("GET", path, query)
    return status, body.decode()


def test_files_are_listed_by_kind(two):
    for session in (two.head_node, two.other):
        kinds = two.api.ok("/api/v0/logs", {"node_id": two.node_id(session)})["result"]
        assert kinds["worker_out"] and kinds["worker_err"] and kinds["raylet"], kinds
        assert ("gcs_server" in kinds) == (session == two.head_node)
    named = two.api.ok(
        "/api/v0/logs", {"node_id": two.node_id(two.other), "glob": "node-manager*"}
    )["result"]
    assert list(named) == ["raylet"]
    assert two.api.ok("/api/v0/logs", {"node_ip": "127.0.0.1"})["result"]
    assert state.list_logs(
        address=f"http://{two.api.address}", node_id=two.node_id(two.other)
    ) == state.list_logs(node_id=two.node_id(two.other))


@pytest.mark.parametrize(
    "query, status",
    [
        ({}, 400),
        ({"node_ip": "10.9.8.7"}, 404),
        ({"node_id": "ff" * 28}, 404),
        ({"node_id": "x", "timeout": "x"}, 400),
    ],
)
def test_lists_that_cannot_be(two, query, status):
    got, answer = two.api.get("/api/v0/logs", query)
    assert (got, answer["result"]) == (status, False) and answer["msg"]


def test_an_actor_on_any_node(two):
    for actor, line in ((two.near, "near hello"), (two.far, "far hello")):
        query = {"actor_id": actor._actor_id.hex()}
        assert eventually(lambda: line in text_of(two, **query)[1].splitlines())
        assert text_of(two, **query, lines=1) == (200, line + "\n")
        assert (
            "".join(state.get_log(address=f"http://{two.api.address}", **query, tail=1))
            == line + "\n"
        )
        assert two.shell.ok(
            "logs", "actor", "--id", actor._actor_id.hex(), "--tail=1"
        ).splitlines() == [line]


def test_people_see_no_markers(two):
    """Marker lines are not shown and do not count for a tail, over RPC and over HTTP. --raw, the
    HTTP interface and get_log give the file as it is."""
    actor = Speaker.options(num_cpus=0).remote()
    lines = ["one", "two", "three"]
    for line in lines:
        ray.get(actor.say.remote(line))
    ident = actor._actor_id.hex()
    assert eventually(lambda: "three" in text_of(two, actor_id=ident)[1])
    assert ":task_id:" in text_of(two, actor_id=ident)[1]
    for where in ([], [f"--address=http://{two.api.address}"]):

        def logs(*words):
            return two.shell.ok("logs", *words, *where).splitlines()

        assert logs("actor", ident) == lines
        assert logs("actor", ident, "--tail=1") == [
            "--- The last line: --tail -1 shows all. ---",
            "three",
        ]
        assert logs("actor", ident, "--tail=2") == [
            "--- The last 2 lines: --tail -1 shows all. ---",
            "two",
            "three",
        ]
        assert logs("actor", ident, "--tail=3") == lines, "nothing was cut"
        raw = logs("actor", ident, "--raw")
        assert (
            ":actor_name:Speaker" in raw
            and [line for line in raw if not line.startswith(":")] == lines
        )


def test_a_task_has_just_its_lines(two):
    task = ray.get(two.far.say.remote("second"))
    assert eventually(lambda: text_of(two, task_id=task) == (200, "second\n"))
    assert text_of(two, task_id=two.tasks[1]) == (200, "far hello\n")
    assert two.shell.ok("logs", "task", f"--id={task}").splitlines() == ["second"]
    assert (
        two.shell.ok("logs", "task", task, "--tail=-1", f"--address=http://{two.api.address}")
        == "second\n"
    )


@ray.remote(max_retries=1, num_cpus=0, resources={"other": 0.1})
def speak_and_die():
    print("attempt", ray.get_runtime_context().get_task_name(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def test_every_attempt_that_crashed_is_a_row_with_its_lines(two):
    """The process that crashed can report nothing any more. The owner of the task, which was told
    of the end, reports where the attempt ran."""
    with pytest.raises(ray.exceptions.WorkerCrashedError):
        ray.get(speak_and_die.remote())
    (task,) = {
        t.task_id
        for t in eventually(
            lambda: state.list_tasks(
                filters=[("func_or_class_name", "=", "speak_and_die"), ("state", "=", "FAILED")]
            )
        )
    }
    attempts = sorted(
        eventually(
            lambda: (
                (got := state.list_tasks(filters=[("task_id", "=", task)], detail=True))
                and len(got) == 2
                and got
            )
        ),
        key=lambda t: t.attempt_number,
    )
    assert [t.attempt_number for t in attempts] == [0, 1]
    for attempt in attempts:
        assert (
            attempt.error_type == "WORKER_DIED"
            and attempt.node_id == two.node_id(two.other)
            and attempt.worker_id
        ), attempt
        assert f"worker process {attempt.worker_pid} " in attempt.error_message
        assert [
            t.attempt_number
            for t in state.list_tasks(filters=[("worker_pid", "=", attempt.worker_pid)])
        ] == [attempt.attempt_number]
        printed = two.shell.run(
            "logs", "task", task, "-a", str(attempt.attempt_number), address=two.address
        )
        assert (printed.returncode, printed.stdout) == (0, "attempt speak_and_die\n"), (
            printed.stderr
        )


def test_files_and_what_is_none(two):
    node = two.node_id(two.other)
    [name] = two.api.ok("/api/v0/logs", {"node_id": node, "glob": "node-manager*.log"})["result"][
        "raylet"
    ]
    status, headers, body = two.api.request(
        "GET",
        "/api/v0/logs/file",
        {"node_id": node, "filename": name, "lines": -1, "download_filename": 'a"/b.log'},
    )
    assert (
        status == 200
        and headers["Content-Type"].startswith("text/plain")
        and headers["Content-Disposition"] == 'attachment; filename="ab.log"'
        and b"registered at the head" in body
    )
    for query, words in (
        ({"node_id": node, "filename": "../node_x.json"}, "not the name"),
        ({"node_id": node, "filename": "none"}, "no log file"),
        ({"node_id": node}, "needed"),
        ({"filename": name}, "node"),
        ({"task_id": "ff" * 24}, "no attempt"),
        ({"actor_id": "ff" * 16}, "no actor"),
        ({"pid": 1, "node_id": node}, "no log"),
        ({"submission_id": "none"}, ""),
        ({"actor_id": "ff" * 16, "suffix": "x"}, "suffix"),
        ({"node_id": node, "filename": b"\xff"}, "\ufffd"),
        ({"submission_id": b"\xff"}, "\ufffd"),
    ):
        status, text = text_of(two, **query)
        assert status == 500 and words.lower() in text.lower(), (query, status, text)


def test_a_stream_goes_on(two):
    connection = two.api.connect(timeout=120)
    connection.request(
        "GET",
        f"/api/v0/logs/stream?actor_id={two.far._actor_id.hex()}&lines=0&interval=0.05",
        headers={"Authorization": f"Bearer {two.api.token}"},
    )
    response = connection.getresponse()
    for text in ("streamed", "streamed later"):
        ray.get(two.far.say.remote(text))
        while (line := response.readline().decode().strip()) != text:
            assert line.startswith((":", "streamed")), line
    connection.close()


@contextlib.contextmanager
def following(cluster, *words):
    process = subprocess.Popen(
        cluster.shell.command("logs", *words, "--interval=0.05"),
        env=cluster.shell.env,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if alive(process.pid):
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)


def test_followed_across_nodes(two):
    enough = threading.Event()

    # Until the follower has begun to read, lines count as older than it.
    def speak():
        while not enough.wait(0.1):
            ray.get([two.near.say.remote("near across"), two.far.say.remote("far across")])

    with following(
        two, "worker-*.out", "--follow", "--tail=0", f"--address={two.address}"
    ) as process:
        speaker = threading.Thread(target=speak)
        speaker.start()
        try:
            wanted = {"near across", "far across"}
            while wanted:
                line = process.stdout.readline()
                assert re.match(r"\(Speaker pid=\d+, ip=127\.0\.0\.1\) [^:]", line), line
                wanted.discard(line.split(") ", 1)[1].strip())
        finally:
            enough.set()
            speaker.join()


def test_a_submitted_job(two):
    two.shell.ok(
        "job",
        "submit",
        f"--address={two.address}",
        "--submission-id=talks",
        "--",
        "echo",
        "said by the job",
    )
    assert "said by the job" in two.shell.ok("logs", "job", "talks")
    assert "said by the job" in text_of(two, submission_id="talks")[1]


def test_rayctl_lists_and_prints(two):
    listing = two.shell.ok("logs", f"--node-id={two.node_id(two.other)}")
    assert (
        listing.startswith(f"Node ID: {two.node_id(two.other)}\n")
        and "worker_out:\n-   worker-" in listing
        and "gcs_server" not in listing
    )
    assert "gcs_server" in two.shell.ok("logs", "cluster")
    assert "no log file of node" in two.shell.fails("logs", "none*")
    printed = two.shell.ok(
        "logs", "node-manager*.log", "-id", two.node_id(two.other), "--tail=-1"
    ).splitlines()
    assert any("registered at the head" in line for line in printed) and not printed[0].startswith(
        "---"
    )
    logs = pathlib.Path(two.head_node).parent / "logs"
    odd = os.fsencode(logs) + b"/of-a-task-\xff.log"
    below = logs / "below"
    below.mkdir()
    (below / "it.log").write_text("it is below\n")
    with open(odd, "w") as file:
        file.write("its name is odd\n")
    try:
        at_head = f"--node-id={two.node_id(two.head_node)}"
        assert "of-a-task-\ufffd.log" in two.shell.ok("logs", at_head)
        assert "its name is odd" in two.shell.ok("logs", at_head, "of-a-task-?.log")
        assert two.api.ok("/api/v0/logs", {"node_id": two.node_id(two.head_node)})["result"]
        assert "it is below" in two.shell.ok("logs", at_head, "below/it.log")
    finally:
        os.unlink(odd)
        shutil.rmtree(below)
    for words, text in (
        (("actor",), "ID or --pid"),
        (("worker",), "PID is missing"),
        (("task",), "ID is missing"),
        (("job",), "SUBMISSION_ID is missing"),
        (("--tail=x",), "--tail"),
        (("worker", "--pid=x"), "--pid"),
        (("worker", "x"), "PID is 'x'"),
        (("task", "aa", "--id=bb"), "'aa' and --id both"),
    ):
        assert text in two.shell.fails("logs", *words, code=2)
    missing = two.shell.fails("logs", "task", "--id", "ff" * 24)
    assert "no attempt" in missing and "---" not in missing


def test_a_task_that_runs_is_followed(two):
    @ray.remote(num_cpus=0)
    class Follows:
        def talk(self, other):
            print("begun")
            ray.get(other.say.remote("not mine"))
            print("goes on")
            return ray.get_runtime_context().get_task_id()

    talker = Follows.remote()
    task = talker.talk.remote(two.far).task_id().hex()
    assert eventually(lambda: text_of(two, task_id=task)[0] == 200)
    with following(two, "task", f"--id={task}", "--follow", f"--address={two.address}") as process:
        assert [process.stdout.readline() for _ in range(2)] == ["begun\n", "goes on\n"]


def test_a_dead_node_is_named(two):
    gone = two.join()
    two.await_nodes(3)
    node = two.node_id(gone)
    two.kill(gone, "ray-node-manager")
    two.await_nodes(2)
    status, answer = two.api.get("/api/v0/logs", {"node_id": node})
    assert status == 500 and "dead" in answer["msg"]


def test_where_a_task_was_is_known_when_its_node_is_not_there_any_more(two):
    gone = two.join(resources='{"short": 1}')
    two.await_nodes(3)
    node = two.node_id(gone)

    @ray.remote(num_cpus=0, resources={"short": 1}, max_retries=0)
    def stays():
        print("hello", flush=True)
        time.sleep(3600)

    ref = stays.remote()
    rows = lambda **wanted: [
        row
        for row in two.api.rows("tasks", detail=1, filters=[("func_or_class_name", "=", "stays")])[
            "result"
        ]
        if all(row[name] == value for name, value in wanted.items())
    ]
    assert eventually(lambda: rows(state="RUNNING"))
    [before] = rows()
    two.kill(gone, "ray-node-manager")
    with pytest.raises(ray.exceptions.RayError):
        ray.get(ref, timeout=60)
    assert eventually(lambda: rows(state="FAILED"))
    [after] = rows()
    assert [after[name] for name in ("node_id", "worker_id", "worker_pid")] == [
        node,
        before["worker_id"],
        before["worker_pid"],
    ]
    two.await_nodes(2)
    assert "is dead" in two.shell.fails(
        "logs", "task", f"--id={before['task_id']}", f"--address={two.address}"
    )


def test_http_rows_have_the_order_of_columns(two):
    web = f"--address=http://{two.api.address}"
    for words in (
        ["list", "nodes"],
        ["list", "workers", "--detail"],
        ["list", "actors", "--format=json"],
    ):
        keys = []
        for address in (f"--address={two.address}", web):
            out = two.shell.ok(*words, address)
            keys.append(
                list(json.loads(out)[0])
                if "json" in words[-1]
                else [line.split(":")[0] for line in out.splitlines() if line[:2] in ("- ", "  ")]
                if "--detail" in words
                else next(line for line in out.splitlines() if "NODE_ID" in line).split()
            )
        assert keys[0] == keys[1] and len(keys[0]) > 3, words


@pytest.mark.parametrize("path", ["/api/v0/logs", "/api/v0/logs/file", "/api/v0/logs/stream"])
def test_a_stranger_reads_nothing(two, path):
    assert (
        two.api.request("GET", path, {"node_ip": "127.0.0.1", "filename": "head.log"}, token=False)[
            0
        ]
        == 401
    )
    assert (
        two.api.request("GET", path, token=False, headers={"Authorization": "Bearer x"})[0] == 403
    )


def test_daemons_write_json_on_request():
    with world() as shell:
        shell.env["RAY_BACKEND_LOG_JSON"] = "1"
        Cluster(shell)
        for name in ("head", "node-manager", "object-store"):
            [path] = shell.root.glob(f"session_2*/logs/{name}*.log")
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            assert lines and all(
                set(line) == {"asctime", "levelname", "component", "process", "message"}
                for line in lines
            ), lines
