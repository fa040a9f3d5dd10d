"""The unchanged client of the real Ray (PyPI) works against this cluster. The tests are skipped
where it is missing: `make conformance` installs it into build/ray-venv and build/ray-extras."""

import json
import subprocess
import textwrap

import pytest
from shell import REPO
from test_job_rest import Web

# Ray, and what its clients need beside it; `make conformance` installs both.
VENV, EXTRAS = (
    REPO / "build" / "ray-venv",
    REPO / "build" / "ray-extras",
)
PROGRAM = """
    import asyncio, sys, time
    from ray.job_submission import JobSubmissionClient, JobStatus

    client = JobSubmissionClient(sys.argv[1])
    print("version", client.get_version())

    def ended(job):
        while not client.get_job_status(job).is_terminal():
            time.sleep(0.05)
        return client.get_job_info(job)

    async def tail(job):
        return "".join([lines async for lines in client.tail_job_logs(job)])

    job = client.submit_job(entrypoint="cat data.txt; echo $COLOUR", submission_id="whole", metadata={"team": "x"}, entrypoint_num_cpus=1, entrypoint_resources={"thing": 1},
                            runtime_env={"working_dir": sys.argv[2], "env_vars": {"COLOUR": "red"}})
    info = ended(job)
    print(info.type, info.submission_id, info.status, info.metadata, info.driver_exit_code, info.message)
    print("log", client.get_job_logs(job).endswith("contentred\\n"), asyncio.run(tail(job)) == client.get_job_logs(job))
    long = client.submit_job(entrypoint="echo begun; sleep 1000")
    while "begun" not in client.get_job_logs(long):
        time.sleep(0.05)
    print("stop", client.stop_job(long), ended(long).status, client.stop_job(long))
    failed = ended(client.submit_job(entrypoint="exit 4"))
    print("failed", failed.status, failed.driver_exit_code, failed.error_type, failed.message.split(",")[0])
    driver = ended(client.submit_job(entrypoint="python -c 'import ray; ray.init(); print(1)'"))
    print("driver", driver.status, driver.job_id is not None, driver.driver_info.id == driver.job_id)
    print("listed", {job.submission_id for job in client.list_jobs()} >= {job, long})
    print("delete", client.delete_job(job))
    for call, id in ((client.get_job_info, job), (client.delete_job, "none")):
        try:
            call(id)
        except RuntimeError as error:
            print("gone", "404" in str(error))
    try:
        client.submit_job(entrypoint="true", submission_id=long)
    except RuntimeError as error:
        print("twice", "already exists" in str(error))
"""
SAID = """
    version 4
    JobType.SUBMISSION whole SUCCEEDED {'team': 'x'} 0 Job finished successfully.
    log True True
    stop True STOPPED False
    failed FAILED 4 JOB_ENTRYPOINT_COMMAND_ERROR Job entrypoint command failed with exit code 4
    driver SUCCEEDED True True
    listed True
    delete True
    gone True
    gone True
    twice True
"""
pytestmark = pytest.mark.skipif(
    not (VENV / "bin" / "ray").exists() or not (EXTRAS / "aiohttp").exists(),
    reason="the real Ray is not installed (make conformance)",
)


@pytest.fixture(scope="module")
def foreign(running):
    """Runs programs in the real Ray's environment, where nothing of this project can be
    imported."""
    env = {
        name: value
        for name, value in running.env.items()
        if name not in ("PYTHONPATH", "RAY_TMPDIR")
    }
    env.update(
        PYTHONPATH=str(EXTRAS),
        RAY_USAGE_STATS_ENABLED="0",
        RAY_TMPDIR=str(running.scratch / "theirs"),
        RAY_AUTH_MODE="token",
        RAY_AUTH_TOKEN=running.ok("get-auth-token").strip(),
        PATH=f"{VENV / 'bin'}:{env['PATH']}",
    )

    def run(*words, timeout=150):
        return subprocess.run(
            [str(word) for word in words],
            env=env,
            cwd=running.scratch,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    return run


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data.txt").write_text("content")
    return tmp_path


def test_the_client_class_of_ray_submits_and_follows_jobs(running, foreign, folder):
    program = running.scratch / "client.py"
    program.write_text(textwrap.dedent(PROGRAM))
    done = foreign(VENV / "bin" / "python", program, "http://" + Web(running).address, folder)
    assert done.stdout == textwrap.dedent(SAID).lstrip(), done.stdout + done.stderr


def test_the_command_line_of_ray_submits_and_follows_jobs(running, foreign, folder):
    ray, address = VENV / "bin" / "ray", "http://" + Web(running).address
    done = foreign(
        ray,
        "job",
        "submit",
        "--address",
        address,
        "--working-dir",
        folder,
        "--submission-id",
        "theirs",
        "--metadata-json",
        json.dumps({"a": "b"}),
        "--",
        "cat",
        "data.txt",
    )
    assert (
        done.returncode == 0
        and "content" in done.stdout
        and "Job 'theirs' succeeded" in done.stdout + done.stderr
    ), done.stdout + done.stderr
    assert "content" in foreign(ray, "job", "logs", "--address", address, "theirs").stdout
    failed = foreign(ray, "job", "submit", "--address", address, "--", "sh", "-c", "exit 5")
    assert failed.returncode == 1 and "failed" in failed.stdout + failed.stderr
    assert "submission_id='theirs'" in foreign(ray, "job", "list", "--address", address).stdout
    assert foreign(ray, "job", "delete", "--address", address, "theirs").returncode == 0
