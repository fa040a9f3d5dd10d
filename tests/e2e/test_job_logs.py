"""The output of submitted jobs is rotated in pieces like the output of workers, and every reader
still gets one text."""

import asyncio
import contextlib
import http.client
import os
import pathlib
import re
import subprocess
import sys
import threading

import pytest
from cluster import Cluster, alive, stopped, world
from waiting import eventually
from test_job_rest import Web

from ray.job_submission import JobSubmissionClient
from ray.util import state

PIECE = 4096
GONE = re.compile(
    r"\[(\d+) bytes were removed here by log rotation; RAY_ROTATION_MAX_BYTES and RAY_ROTATION_BACKUP_COUNT set how much is kept\]\n"
)
COUNT = (
    "i=0; while [ $i -lt {0} ]; do echo line $i of {0}, long enough for pieces; i=$((i+1)); done"
)


def lines_to(count, first=0):
    return "".join(f"line {i} of {count}, long enough for pieces\n" for i in range(first, count))


@contextlib.contextmanager
def rotating():
    """A cluster whose node rotates small pieces and keeps all of them."""
    with world() as shell:
        shell.env.update(RAY_ROTATION_MAX_BYTES=str(PIECE), RAY_ROTATION_BACKUP_COUNT="1000")
        c = Cluster(shell)
        shell.env["RAY_ADDRESS"] = c.address
        c.web = Web(shell, c.address)
        yield c


@pytest.fixture(scope="module")
def c():
    with rotating() as running:
        yield running


def pieces(c, job):
    """Returns names and sizes of the pieces, the oldest first."""
    found = {}
    for entry in os.scandir(pathlib.Path(c.head_node).parent / "logs"):
        if entry.name.startswith(f"job-driver-{job}.log"):
            # It may be deleted meanwhile.
            with contextlib.suppress(FileNotFoundError):
                found[entry.name] = entry.stat().st_size
    return dict(
        sorted(found.items(), key=lambda item: -int(item[0].rpartition(".log")[2][1:] or 0))
    )


def output_of(c, entrypoint, **variables):
    """Runs a job; returns its id and the line with which its output begins."""
    job = c.web.submit(entrypoint, runtime_env={"env_vars": variables})
    c.web.ended(job)
    return job, f"Running entrypoint for job {job}: {entrypoint}\n"


def tailed(client, job):
    async def read():
        return "".join([text async for text in client.tail_job_logs(job)])

    return asyncio.run(read())


def in_offsets(c, job):
    text, offset = "", "0"
    while True:
        connection = http.client.HTTPConnection(c.web.address, timeout=60)
        connection.request(
            "GET",
            f"/api/jobs/{job}/logs?offset={offset}",
            headers={"Authorization": "Bearer " + c.shell.ok("get-auth-token").strip()},
        )
        answer = connection.getresponse()
        piece, offset = answer.read().decode(), answer.getheader("X-Ray-Next-Offset")
        connection.close()
        if not piece:
            return text
        text += piece


def everywhere(c, job):
    """Returns what each kind of reader gets, by its name."""
    client, node, name = (
        JobSubmissionClient("http://" + c.web.address),
        c.node_id(c.head_node),
        f"job-driver-{job}.log",
    )
    there = {"RAY_ADDRESS": "http://" + c.web.address}
    return {
        "whole": c.web.json("GET", f"/api/jobs/{job}/logs")["logs"],
        "offsets": in_offsets(c, job),
        "get_job_logs": client.get_job_logs(job),
        "tail_job_logs": tailed(client, job),
        "get_log": "".join(state.get_log(address=c.address, submission_id=job, tail=-1)),
        "file of a job": c.web.ask("GET", f"/api/v0/logs/file?submission_id={job}&lines=-1")[2],
        "file by name": c.web.ask(
            "GET", f"/api/v0/logs/file?filename={name}&node_id={node}&lines=-1"
        )[2],
        "job logs": c.shell.ok("job", "logs", job),
        "job logs -f": c.shell.ok("job", "logs", "-f", job),
        "job logs over HTTP": c.shell.ok(
            "job", "logs", job, RAY_API_SERVER_ADDRESS=there["RAY_ADDRESS"]
        ),
        "logs job": c.shell.ok("logs", "job", job, "--tail=-1"),
        "logs by name": c.shell.ok("logs", name, "--tail=-1"),
        "logs over HTTP": c.shell.ok("logs", "job", job, "--tail=-1", **there),
    }


def test_every_reader_goes_over_the_pieces(c):
    job, begins = output_of(c, COUNT.format(1000))
    wanted = begins + lines_to(1000)
    sizes = list(pieces(c, job).values())
    assert (
        sum(sizes) == len(wanted)
        and len(sizes) > 5
        and all(PIECE <= size < PIECE + 100 for size in sizes[:-1])
    ), sizes
    for reader, text in everywhere(c, job).items():
        assert wanted in text and text.count("line 999 ") == 1 and "gone here" not in text, (
            reader,
            text[-500:],
        )
    # This makes more than one piece.
    last = lines_to(1000, 700)
    assert (
        c.shell.ok("logs", "job", job, "--tail=300")
        == "--- The last 300 lines: --tail -1 shows all. ---\n" + last
    )
    assert c.web.ask("GET", f"/api/v0/logs/file?submission_id={job}&lines=300")[2] == last


def test_retention_is_told(c):
    job, begins = output_of(c, COUNT.format(1000), RAY_ROTATION_BACKUP_COUNT="2")
    names = list(pieces(c, job))
    assert names == [f"job-driver-{job}.log{end}" for end in (".2", ".1", "")]
    kept = sum(pieces(c, job).values())
    wanted = (begins + lines_to(1000))[-kept:]
    for reader, text in everywhere(c, job).items():
        [gone] = GONE.findall(text)
        assert int(gone) == len(begins + lines_to(1000)) - kept, (reader, gone)
        assert f"much is kept]\n{wanted}" in text and text.count("line 999 ") == 1, (
            reader,
            text[:500],
        )
    assert c.shell.ok("logs", "job", job, "--tail=2").endswith("---\n" + lines_to(1000, 998))


def test_a_failure_shows_lines_of_two_pieces(c):
    filler = "x" * (PIECE - 10)
    job, _ = output_of(c, f"echo one; echo {filler}; echo three; exit 1")
    assert c.web.json("GET", f"/api/jobs/{job}")["message"].endswith(f"one\n{filler}\nthree\n")


def test_followers_see_each_line_once(c, tmp_path):
    """Followers get every line once while the log that they read is rotated, over RPC, HTTP and
    WebSocket."""
    go, job = tmp_path / "go", "followed"
    wait = f"while [ ! -e {go} ]; do sleep 0.02; done; "
    env = dict(c.shell.env)
    submitted = subprocess.Popen(
        c.shell.command(
            "job",
            "submit",
            "--submission-id",
            job,
            "--",
            "sh",
            "-c",
            "echo begun; " + wait + COUNT.format(1500),
        ),
        env=env,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert eventually(lambda: pieces(c, job))
    there = {**env, "RAY_ADDRESS": "http://" + c.web.address}
    endless = [
        ["logs", "job", job, "-f", "--tail=-1", "--interval=0.02"],
        ["logs", f"job-driver-{job}.log*", "-f", "--tail=-1", "--interval=0.02"],
    ]
    processes = [
        submitted,
        subprocess.Popen(
            c.shell.command("job", "logs", "-f", job), env=env, stdout=subprocess.PIPE, text=True
        ),
        subprocess.Popen(
            c.shell.command("job", "logs", "-f", job),
            env={**env, "RAY_API_SERVER_ADDRESS": there["RAY_ADDRESS"]},
            stdout=subprocess.PIPE,
            text=True,
        ),
        *(
            subprocess.Popen(c.shell.command(*words), env=env, stdout=subprocess.PIPE, text=True)
            for words in endless
        ),
        subprocess.Popen(
            c.shell.command(*endless[0]), env=there, stdout=subprocess.PIPE, text=True
        ),
    ]
    texts = [""] * (len(processes) + 1)
    begun = [threading.Event() for _ in processes]

    def read(number):
        for line in processes[number].stdout:
            texts[number] += line
            if line.endswith("begun\n"):
                begun[number].set()
            if "line 1499 " in line and number >= 3:
                processes[number].kill()

    threads = [threading.Thread(target=read, args=(number,)) for number in range(len(processes))]
    client = JobSubmissionClient("http://" + c.web.address)

    def tail():
        texts[-1] = tailed(client, job)

    threads.append(threading.Thread(target=tail))
    for thread in threads:
        thread.start()
    assert all(event.wait(30) for event in begun)
    go.touch()
    for thread in threads:
        thread.join(60)
    for process in processes:
        process.wait(30)
    assert len(pieces(c, job)) > 10
    for number, text in enumerate(texts):
        found = re.findall(r"line (\d+) of 1500, long enough for pieces\n", text)
        assert found == [str(i) for i in range(1500)], (number, len(found), text[-300:])


def test_deleted_with_its_pieces(c):
    job, _ = output_of(c, COUNT.format(500))
    other, _ = output_of(c, "echo stays")
    assert len(pieces(c, job)) > 3
    assert c.web.json("DELETE", f"/api/jobs/{job}") == {"deleted": True}
    assert eventually(lambda: not pieces(c, job)) and pieces(c, other)


@pytest.mark.parametrize(
    "name, value", [("RAY_ROTATION_MAX_BYTES", "much"), ("RAY_ROTATION_BACKUP_COUNT", "-1")]
)
def test_what_is_no_limit(c, name, value):
    job = c.web.submit("true", runtime_env={"env_vars": {name: value}})
    details = c.web.ended(job)
    assert details["status"] == "FAILED" and details["message"].endswith(
        f"{name} is '{value}', but must be a whole number, 0 or more"
    ), details


def test_a_long_output_goes_through_the_head_in_pieces(c):
    """The output has characters of several bytes and bytes that are no characters. It becomes JSON
    while the head keeps only a small part of it in memory."""
    program = "import sys; line = ('\\u20ac\\\"\\\\\\\\' * 40 + '\\\\n').encode(); [sys.stdout.buffer.write(line + bytes([255, 10])) for _ in range(300_000)]"
    head = c.pid(c.head_node, "ray-head")

    def peak():
        return (
            int(
                re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{head}/status").read_text())[1]
            )
            << 10
        )

    job, begins = output_of(
        c, f'{sys.executable} -c "{program}"', RAY_ROTATION_MAX_BYTES=str(16 << 20)
    )
    assert len(pieces(c, job)) > 3
    c.web.json("GET", f"/api/jobs/{output_of(c, 'true')[0]}/logs")
    pathlib.Path(f"/proc/{head}/clear_refs").write_text("5")
    before = peak()
    text = c.web.json("GET", f"/api/jobs/{job}/logs")["logs"]
    size = sum(pieces(c, job).values())
    # The comparison has its own line, because pytest would print the difference of two long texts.
    same = text == begins + ('€"\\' * 40 + "\n\ufffd\n") * 300_000
    assert same and size > 60_000_000
    assert peak() - before < size / 4


def test_the_head_is_away_meanwhile(tmp_path):
    with rotating() as c:
        go = tmp_path / "go"
        first, second = COUNT.format(300), COUNT.format(301)
        follower = subprocess.Popen(
            c.shell.command(
                "job",
                "submit",
                "--submission-id",
                "long",
                "--",
                "sh",
                "-c",
                f"{first}; while [ ! -e {go} ]; do sleep 0.02; done; {second}",
            ),
            env=c.shell.env,
            cwd=c.shell.scratch,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert eventually(lambda: sum(pieces(c, "long").values()) > len(lines_to(300)))
        c.kill(c.head_node, "ray-head")
        go.touch()
        whole = lines_to(300) + lines_to(301)
        assert eventually(lambda: sum(pieces(c, "long").values()) > len(whole)), (
            "it is written without the head"
        )
        c.shell.ok("start", "--head", f"--port={c.port}")
        out, errors = follower.communicate(timeout=60)
        assert follower.returncode == 0 and re.findall(r"line \d+ of \d+", out) == re.findall(
            r"line \d+ of \d+", whole
        ), (out[-500:], errors)
        again = Web(c.shell, c.address)
        again.ended("long")
        assert again.json("GET", "/api/jobs/long/logs")["logs"].endswith("'\n" + whole)


def test_what_a_killed_node_manager_leaves_does_not_stay(tmp_path):
    """When a node-manager is killed, the shell of its job and every process that the shell has
    started end, too."""
    with rotating() as c:
        other = c.join(resources={"other": 1})
        child = tmp_path / "child"
        job = c.web.submit(
            f"sh -c 'trap \"\" HUP TERM; echo $$ > {child}; exec sleep 600'; true",
            entrypoint_resources={"other": 1},
        )
        assert eventually(lambda: child.exists() and child.read_text().strip())
        c.kill(other, "ray-node-manager")
        assert c.web.ended(job)["status"] == "FAILED"
        assert eventually(lambda: not alive(int(child.read_text())))


def test_a_node_that_ends_while_it_is_asked_is_not_a_job_without_output():
    with rotating() as c:
        other = c.join(resources={"other": 1})
        job = c.web.submit("echo some output; exec sleep 600", entrypoint_resources={"other": 1})
        assert eventually(lambda: "some output" in c.shell.ok("job", "logs", job))
        manager = c.pid(other, "ray-node-manager")
        with stopped(manager):
            asks = subprocess.Popen(
                c.shell.command("job", "logs", job),
                env=c.shell.env,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            stat = pathlib.Path(f"/proc/{asks.pid}/stat")
            # Once the command sleeps, it waits for the answer.
            assert eventually(lambda: stat.read_text().rpartition(")")[2].split()[0] == "S")
            c.kill(other, "ray-node-manager")
            out, errors = asks.communicate(timeout=60)
        assert asks.returncode == 1 and "the output of job" in errors and not out
