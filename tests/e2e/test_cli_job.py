"""rayctl job on one node: a job is followed, left, stopped, and asked for."""

import json
import re
import pytest
from waiting import eventually


def test_a_job_is_followed_and_its_exit_code_is_ours(running):
    done = running.run(
        "job",
        "submit",
        "--submission-id",
        "seven",
        "--",
        "sh",
        "-c",
        "echo 'one two'; echo three >&2; exit 7",
    )
    assert done.returncode == 7, done.stderr
    assert (
        "Job 'seven' submitted successfully" in done.stdout
        and "one two\nthree\n" in done.stdout
        and "Job 'seven' failed" in done.stdout
    )
    assert "one two\nthree\n" in running.ok("job", "logs", "seven")
    assert "Job 'seven' failed" in running.ok("job", "status", "seven")
    (job,) = [
        job
        for job in json.loads(running.ok("job", "list", "--format", "json"))
        if job["submission_id"] == "seven"
    ]
    assert job["status"] == "FAILED" and job["driver_exit_code"] == 7
    assert "submission_id='seven'" in running.ok("job", "list")
    assert "already exists" in running.fails(
        "job", "submit", "--submission-id", "seven", "--", "true"
    )


def test_a_job_of_success(running):
    out = running.ok(
        "job",
        "submit",
        "--",
        "python",
        "-c",
        "import ray; ray.init(); print(ray.get(ray.put('from the job')))",
    )
    assert "from the job" in out and re.search(r"Job 'raysubmit_\w+' succeeded", out)


def test_a_job_can_be_left_and_stopped(running):
    out = running.ok("job", "submit", "--no-wait", "--submission-id", "long", "--", "sleep", "1000")
    assert "Tailing" not in out
    assert eventually(lambda: "RUNNING" in running.ok("job", "status", "long"))
    out = running.ok("job", "stop", "long")
    assert "Attempting to stop job 'long'" in out and "Job 'long' was stopped" in out
    assert eventually(lambda: not any("sleep 1000" in line for line in running.processes()))


@pytest.mark.parametrize("seconds, takes, ends", [("30", 1, "cleaned up\n"), ("3", 1000, "term\n")])
def test_a_job_that_is_stopped_may_clean_up(running, seconds, takes, ends):
    """A job gets time to clean up after the signal, although the shell that started its program
    dies of the signal at once."""
    name = "clean-" + ends.split()[0]
    program = (
        "import signal, sys, time; "
        f"cleans_up = lambda *_: (print('term', flush=True), time.sleep({takes}), "
        "print('cleaned up', flush=True), sys.exit(0)); "
        "signal.signal(signal.SIGTERM, cleans_up); print('ready', flush=True); time.sleep(1000)"
    )
    running.ok(
        "job",
        "submit",
        "--no-wait",
        "--submission-id",
        name,
        "--runtime-env-json",
        json.dumps({"env_vars": {"RAY_JOB_STOP_WAIT_TIME_S": seconds}}),
        "--",
        "python",
        "-c",
        program,
    )
    assert eventually(lambda: "ready\n" in running.ok("job", "logs", name))
    assert f"Job '{name}' was stopped" in running.ok("job", "stop", name)
    assert running.ok("job", "logs", name).endswith(ends)
    # A process that was killed ends when it gets a processor.
    assert eventually(lambda: not any("cleans_up" in line for line in running.processes()))


@pytest.mark.parametrize("words", [[""], ["", "x"]])
def test_a_job_of_nothing(running, words):
    assert "the command to run is empty" in running.fails("job", "submit", "--", *words, code=2)


def test_jobs_that_do_not_exist(running):
    for command in ("status", "logs", "stop", "delete"):
        assert "nobody" in running.fails("job", command, "nobody")
