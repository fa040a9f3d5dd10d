"""When the reader, terminal or disk of rayctl goes away, rayctl ends quietly or with an error."""

import os
import signal
import subprocess
import pytest
from waiting import eventually


def into_full_disk(shell, words):
    with open("/dev/full", "w") as full:
        return subprocess.run(
            shell.command(*words),
            env=shell.env,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )


def test_output_that_cannot_be_written_is_an_error(shell):
    shell.ok("start", "--head", "--port=0", "--num-cpus=1")
    for words in (
        ["nodes", "--format", "json"],
        ["status"],
        ["get-auth-token"],
        ["job", "submit", "--", "echo", "hello"],
    ):
        done = into_full_disk(shell, words)
        assert (
            done.returncode == 1
            and done.stderr == "Error: cannot write the output: No space left on device\n"
        ), (words, done)


def test_output_larger_than_a_buffer_fails_alike(shell):
    """The output is more than stdio keeps, so that writing fails in the middle of the command and
    not at its end."""
    shell.ok("start", "--head", "--port=0", "--num-cpus=1")
    shell.ok("job", "submit", "--no-wait", "--submission-id=wordy", "--", "echo", *["w" * 500] * 40)
    for words in (
        ["job", "list"],
        ["job", "list", "--format=json"],
        ["list", "jobs", "--detail"],
        ["list", "jobs", "--format=json", "--detail"],
        ["job", "--help"],
        ["start", "--help"],
        ["completion", "bash"],
        ["command-doc"],
    ):
        done = into_full_disk(shell, words)
        assert (done.returncode, done.stderr) == (
            1,
            "Error: cannot write the output: No space left on device\n",
        ), (words, done)
        reader, writer = os.pipe()
        os.close(reader)
        with open(writer, "w") as closed:
            done = subprocess.run(
                shell.command(*words),
                env=shell.env,
                stdout=closed,
                stderr=subprocess.PIPE,
                text=True,
                timeout=60,
            )
        assert (done.returncode, done.stderr) == (-signal.SIGPIPE, ""), (words, done)
    with open("/dev/full", "w") as full:
        assert (
            subprocess.run(
                shell.command("no-such-command"), env=shell.env, stderr=full, timeout=60
            ).returncode
            == 2
        )


def test_following_a_job_ends_with_its_reader(shell):
    shell.ok("start", "--head", "--port=0", "--num-cpus=1")
    following = subprocess.Popen(
        shell.command(
            "job",
            "submit",
            "--submission-id=endless",
            "--",
            "sh",
            "-c",
            "while echo line; do sleep 0.01; done",
        ),
        env=shell.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while following.stdout.readline() != b"line\n":
        assert following.poll() is None
    following.stdout.close()
    assert following.wait(timeout=120) == -signal.SIGPIPE and following.stderr.read() == b""
    following.stderr.close()
    assert "RUNNING" in shell.ok("job", "status", "endless")
    shell.ok("job", "stop", "endless")


@pytest.mark.parametrize(
    "words", [["job", "logs", "-f", "silent"], ["logs", "--follow", "job-driver-*.log"]]
)
def test_followers_of_what_is_silent_end_with_their_reader(shell, words):
    shell.ok("start", "--head", "--port=0", "--num-cpus=1")
    shell.ok(
        "job",
        "submit",
        "--no-wait",
        "--submission-id=silent",
        "--",
        "sh",
        "-c",
        "echo first; exec sleep 3600",
    )
    assert eventually(lambda: "first" in shell.ok("job", "logs", "silent"))
    following = subprocess.Popen(
        shell.command(*words), env=shell.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while b"first" not in following.stdout.readline():
        assert following.poll() is None
    following.stdout.close()
    assert following.wait(timeout=120) == -signal.SIGPIPE and following.stderr.read() == b""
    following.stderr.close()
    shell.ok("job", "stop", "silent")


@pytest.mark.parametrize("words", [["status"], ["timeline", "-o", "-"], ["nodes", "--format=json"]])
def test_output_that_is_closed_goes_to_nobody(shell, words):
    shell.ok("start", "--head", "--port=0", "--num-cpus=1")
    done = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *shell.command(*words)],
        env=shell.env,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    assert (
        done.returncode == 1
        and "Bad file descriptor" in done.stderr
        and done.stderr.count("\n") == 1
    ), done.stderr
    assert (
        subprocess.run(
            ["sh", "-c", '"$@" 2>&-', "sh", *shell.command("no-such-command")],
            env=shell.env,
            timeout=60,
        ).returncode
        == 2
    )
    assert "Active" in shell.ok("status")


def test_a_trace_ends_with_its_reader(running):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as closed:
        done = subprocess.run(
            running.command("timeline", "-o", "-", f"--address={running.address}"),
            env=running.env,
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert done.returncode == -signal.SIGPIPE and "Error" not in done.stderr


def test_a_trace_that_cannot_be_written_removes_no_device(shell):
    shell.ok("start", "--head", "--port=0", "--num-cpus=1")
    full = shell.scratch / "full"
    full.symlink_to("/dev/full")
    assert "No space left on device" in shell.fails("timeline", "-o", full)
    assert full.is_char_device()
