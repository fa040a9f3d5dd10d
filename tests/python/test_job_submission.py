"""ray.job_submission: jobs over the HTTP interface of the cluster."""

import asyncio
import json
import re
import sys

import pytest
from waiting import until

import ray
from ray.exceptions import AuthenticationError
from ray.job_submission import (
    DriverInfo,
    JobDetails,
    JobErrorType,
    JobInfo,
    JobStatus,
    JobSubmissionClient,
    JobType,
)

PYTHON = sys.executable


@pytest.fixture(scope="module")
def client(cluster):
    return JobSubmissionClient("auto")


def ended(client, job_id):
    until(lambda: client.get_job_status(job_id).is_terminal())
    return client.get_job_info(job_id)


def tail(client, job_id):
    async def read():
        return [text async for text in client.tail_job_logs(job_id)]

    return asyncio.run(read())


def test_the_address(client, cluster, monkeypatch):
    assert client.get_address() == "http://" + cluster.dashboard_url and client.get_version() == "4"
    assert (
        JobSubmissionClient(cluster.address_info["address"]).get_address() == client.get_address()
    )
    monkeypatch.setenv("RAY_ADDRESS", client.get_address())
    assert JobSubmissionClient("http://127.0.0.1:1").get_address() == client.get_address()
    monkeypatch.setenv("RAY_API_SERVER_ADDRESS", "http://127.0.0.1:1")
    with pytest.raises(ConnectionError, match="127.0.0.1:1"):
        JobSubmissionClient(client.get_address())


def test_wrong_arguments_are_refused(client):
    for wrong in (
        {"address": 1},
        {"cookies": "x"},
        {"metadata": ["x"]},
        {"headers": 3},
        {"verify": 7},
    ):
        with pytest.raises(TypeError):
            JobSubmissionClient(**wrong)
    with pytest.raises(TypeError):
        client.submit_job(entrypoint="true", runtime_env="{}")
    with pytest.raises(TypeError):
        client.submit_job(entrypoint="true", metadata="{}")
    with pytest.raises(ValueError, match="worker_process_setup_hook"):
        client.submit_job(entrypoint="true", runtime_env={"worker_process_setup_hook": print})
    with pytest.raises(RuntimeError, match="status code 400.*metadata"):
        client.submit_job(entrypoint="true", metadata={"a": 1})
    with pytest.raises(ValueError):
        JobSubmissionClient("ray://127.0.0.1:10001")


def test_a_jobs_life(client):
    job_id = client.submit_job(
        entrypoint="echo hello; echo trouble >&2",
        metadata={"team": "x"},
        runtime_env={"env_vars": {"A": "b"}},
    )
    assert re.fullmatch(r"raysubmit_[A-HJ-NP-Za-km-z1-9]{16}", job_id), job_id
    info = ended(client, job_id)
    assert (
        isinstance(info, JobDetails)
        and info.type is JobType.SUBMISSION
        and info.submission_id == job_id
        and info.job_id is None
        and info.driver_info is None
    )
    assert (
        info.status is JobStatus.SUCCEEDED
        and info.message == "Job finished successfully."
        and info.error_type is None
    )
    assert (
        info.start_time <= info.end_time
        and info.metadata == {"team": "x"}
        and info.runtime_env == {"env_vars": {"A": "b"}}
        and info.driver_exit_code == 0
    )
    assert (
        info.driver_node_id == ray.nodes()[0]["NodeID"]
        and info.entrypoint == "echo hello; echo trouble >&2"
    )
    logs = client.get_job_logs(job_id)
    assert logs == f"Running entrypoint for job {job_id}: {info.entrypoint}\nhello\ntrouble\n"
    assert "".join(tail(client, job_id)) == logs
    assert client.stop_job(job_id) is False
    assert job_id in [job.submission_id for job in client.list_jobs()]
    assert client.delete_job(job_id) is True
    for question in (client.get_job_info, client.get_job_logs, client.stop_job, client.delete_job):
        with pytest.raises(RuntimeError, match=f"status code 404: Job {job_id} does not exist"):
            question(job_id)
    with pytest.raises(RuntimeError, match="status code 404"):
        tail(client, job_id)


def test_its_folder_variables_and_driver(client, tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "data.txt").write_text("content")
    (tmp_path / "work" / "program.py").write_text(
        "import os, ray\nray.init()\nprint(open('data.txt').read(), os.environ['COLOUR'])\n"
        "print(ray.get(ray.remote(lambda: open('data.txt').read() + os.environ['COLOUR']).remote()))\n"
        "import beside; print(beside.X)\n"
    )
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "__init__.py").write_text("X = 77")
    job_id = client.submit_job(
        entrypoint=f"{PYTHON} program.py",
        submission_id="my-job.1",
        runtime_env={
            "working_dir": str(tmp_path / "work"),
            "py_modules": [str(tmp_path / "beside")],
            "env_vars": {"COLOUR": "red"},
        },
    )
    info = ended(client, job_id)
    logs = client.get_job_logs(job_id)
    assert job_id == "my-job.1" and info.status is JobStatus.SUCCEEDED, logs
    assert "content red\n" in logs and "contentred\n" in logs and "77\n" in logs
    assert re.fullmatch(r"gcs://_ray_pkg_\w+\.zip", info.runtime_env["working_dir"])
    assert (
        re.fullmatch("[0-9a-f]{8}", info.job_id)
        and isinstance(info.driver_info, DriverInfo)
        and info.driver_info.id == info.job_id
        and info.driver_info.pid.isdigit()
    )
    assert client.get_job_info(info.job_id) == info
    assert [job.submission_id for job in client.list_jobs() if job.job_id == info.job_id] == [
        job_id
    ]


def test_a_failed_job_says_why(client):
    info = ended(client, client.submit_job(entrypoint="echo so it goes; exit 7"))
    assert (
        info.status is JobStatus.FAILED
        and info.driver_exit_code == 7
        and info.error_type == JobErrorType.JOB_ENTRYPOINT_COMMAND_ERROR
    )
    assert info.message.startswith(
        "Job entrypoint command failed with exit code 7, last available logs (truncated to 20,000 chars):\n"
    ) and info.message.endswith("so it goes\n")
    info = ended(
        client,
        client.submit_job(entrypoint="true", runtime_env={"working_dir": "gcs://_ray_pkg_0.zip"}),
    )
    assert (
        info.status is JobStatus.FAILED
        and info.error_type == "RUNTIME_ENV_SETUP_FAILURE"
        and "_ray_pkg_0.zip" in info.message
    )


def test_stopping_and_what_cannot_be_done(client):
    job_id = client.submit_job(entrypoint="echo here; sleep 1000")
    until(lambda: "here" in client.get_job_logs(job_id))
    with pytest.raises(RuntimeError, match="status code 500.*RUNNING"):
        client.delete_job(job_id)
    with pytest.raises(RuntimeError, match="status code 500.*already exists"):
        client.submit_job(entrypoint="true", submission_id=job_id)
    assert client.stop_job(job_id) is True
    info = ended(client, job_id)
    assert info.status is JobStatus.STOPPED and info.message == "Job was intentionally stopped."


def test_following_one_that_runs(client, tmp_path):
    go = tmp_path / "go"
    job_id = client.submit_job(
        entrypoint=f"echo caf\u00e9 before; while [ ! -e {go} ]; do sleep 0.02; done; for i in $(seq 25); do echo line $i; done"
    )

    async def read():
        texts = []
        async for text in client.tail_job_logs(job_id):
            texts.append(text)
            go.touch()
        return texts

    texts = asyncio.run(read())
    assert "caf\u00e9 before\n" in texts[0] or "caf\u00e9 before\n" in texts[1]
    assert (
        "".join(texts) == client.get_job_logs(job_id)
        and "line 25\n" in texts[-1]
        and all(text.count("\n") <= 10 for text in texts)
    )


def test_what_it_asks_for_is_held(client, tmp_path):
    go = tmp_path / "go"
    job_id = client.submit_job(
        entrypoint=f"while [ ! -e {go} ]; do sleep 0.02; done",
        entrypoint_num_cpus=1,
        entrypoint_resources={"thing": 0.5},
    )
    until(lambda: client.get_job_status(job_id) is JobStatus.RUNNING)
    until(lambda: [ray.available_resources().get(name) for name in ("CPU", "thing")] == [3, 1.5])
    waiting = client.submit_job(entrypoint="true", entrypoint_num_cpus=4)
    until(
        lambda: "It waits for a node with {'CPU': 4.0} free" in client.get_job_info(waiting).message
    )
    go.touch()
    assert (
        ended(client, job_id).status is JobStatus.SUCCEEDED
        and ended(client, waiting).status is JobStatus.SUCCEEDED
    )

    # A resource that is all in use is not among the free ones.
    def free():
        there = ray.available_resources()
        return there.get("CPU", 0), there.get("thing", 0)

    until(free, (4, 2).__eq__)
    nowhere = client.submit_job(entrypoint="true", entrypoint_label_selector={"zone": "in(a, b)"})
    until(lambda: "zone is in (a, b)" in client.get_job_info(nowhere).message)
    assert client.get_job_status(nowhere) is JobStatus.PENDING and client.stop_job(nowhere)


def test_drivers_are_listed_after_submitted_ones(client):
    jobs = client.list_jobs()
    types = [job.type for job in jobs]
    assert (
        types == sorted(types, key=[JobType.SUBMISSION, JobType.DRIVER].index)
        and JobType.DRIVER in types
    )
    mine = next(job for job in jobs if job.job_id == ray.get_runtime_context().get_job_id())
    assert (
        mine.status is JobStatus.RUNNING
        and mine.submission_id is None
        and mine.end_time == 0
        and mine.message is None
    )
    assert client.get_job_info(mine.job_id).type is JobType.DRIVER
    for question, what in (
        (client.stop_job, "stop"),
        (client.delete_job, "delete"),
        (client.get_job_logs, "get logs of"),
    ):
        with pytest.raises(
            RuntimeError, match=f"status code 400: Can only {what} submission type jobs"
        ):
            question(mine.job_id)


def test_headers_and_tokens(client, monkeypatch):
    with pytest.raises(AuthenticationError, match="Invalid authentication token"):
        JobSubmissionClient(client.get_address(), headers={"Authorization": "Bearer wrong"})
    monkeypatch.setenv("RAY_JOB_HEADERS", json.dumps({"Authorization": "Bearer wrong"}))
    with pytest.raises(AuthenticationError):
        JobSubmissionClient(client.get_address())
    monkeypatch.delenv("RAY_JOB_HEADERS")
    token = ray._raylet.auth_token(False)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(AuthenticationError, match="Missing authentication token"):
        JobSubmissionClient(client.get_address())
    assert (
        JobSubmissionClient(
            client.get_address(),
            cookies={"ray-authentication-token": token},
            metadata={"who": "me"},
        ).get_version()
        == "4"
    )


def test_default_metadata(client):
    with_default = JobSubmissionClient(client.get_address(), metadata={"who": "me"})
    assert ended(
        with_default, with_default.submit_job(entrypoint="true", metadata={"k": "v"})
    ).metadata == {"who": "me", "k": "v"}


def test_records_convert_to_texts_and_dicts():
    assert (
        str(JobType.DRIVER) == "JobType.DRIVER"
        and str(JobStatus.FAILED) == "FAILED"
        and JobStatus("STOPPED").is_terminal()
        and not JobStatus.PENDING.is_terminal()
    )
    assert (
        JobInfo(status=JobStatus.PENDING, entrypoint="x").message == "Job has not started yet."
        and len(JobErrorType) == 8
    )
    details = JobDetails(
        type="SUBMISSION",
        status="RUNNING",
        entrypoint="x",
        driver_info={"id": "1", "node_ip_address": "i", "pid": "2"},
    )
    assert details.driver_info.pid == "2" and details.dict()["driver_info"]["id"] == "1"
    assert repr(details).startswith(
        "JobDetails(type=<JobType.SUBMISSION: 'SUBMISSION'>, job_id=None, "
    )
