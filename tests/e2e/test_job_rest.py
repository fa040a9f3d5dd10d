"""The Jobs REST interface: as a foreign client sees it, under rayctl, and after the head was
killed."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys

import pytest
from cluster import alive, cluster
from waiting import eventually
from cluster import running_dashboard as dashboard_of


class Web:
    """Sends requests with the token of the test's world."""

    def __init__(self, shell, address=None):
        self.shell, self.address = shell, dashboard_of(shell, address)

    def ask(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection(self.address, timeout=60)
        token = self.shell.ok("get-auth-token").strip()
        try:
            connection.request(
                method,
                path,
                body if body is None or isinstance(body, bytes) else json.dumps(body),
                {"Authorization": f"Bearer {token}", **headers},
            )
            answer = connection.getresponse()
            return answer.status, answer.getheader("Content-Type"), answer.read().decode()
        finally:
            connection.close()

    def json(self, method, path, body=None):
        status, _, text = self.ask(method, path, body)
        assert status == 200, (status, text)
        return json.loads(text)

    def submit(self, entrypoint, **fields):
        return self.json("POST", "/api/jobs/", {"entrypoint": entrypoint, **fields})[
            "submission_id"
        ]

    def ended(self, job_id):
        assert eventually(
            lambda: (
                self.json("GET", f"/api/jobs/{job_id}")["status"]
                in ("STOPPED", "SUCCEEDED", "FAILED")
            ),
            60,
        )
        return self.json("GET", f"/api/jobs/{job_id}")


@pytest.fixture(scope="module")
def web(running):
    return Web(running)


DETAILS = {
    "type",
    "job_id",
    "submission_id",
    "driver_info",
    "status",
    "entrypoint",
    "message",
    "error_type",
    "start_time",
    "end_time",
    "metadata",
    "runtime_env",
    "driver_agent_http_address",
    "driver_node_id",
    "driver_exit_code",
}


def test_a_job_has_the_fields_of_ray_and_may_be_named_by_job_id(web):
    answer = web.json(
        "POST",
        "/api/jobs/",
        {"entrypoint": "echo hi", "job_id": "by-old-name", "runtime_env": None},
    )
    assert answer == {"job_id": "by-old-name", "submission_id": "by-old-name"}
    job = web.ended("by-old-name")
    assert set(job) == DETAILS and (
        job["status"],
        job["driver_exit_code"],
        job["job_id"],
        job["metadata"],
        job["runtime_env"],
    ) == ("SUCCEEDED", 0, None, {}, {})
    assert job in web.json("GET", "/api/jobs/")
    assert web.json("GET", "/api/jobs/by-old-name/logs") == {
        "logs": "Running entrypoint for job by-old-name: echo hi\nhi\n"
    }
    assert web.json("POST", "/api/jobs/by-old-name/stop") == {"stopped": False}
    assert web.json("DELETE", "/api/jobs/by-old-name") == {"deleted": True}


@pytest.mark.parametrize(
    "method, path, body, status, said",
    [
        ("GET", "/api/jobs", None, 404, ""),
        ("PATCH", "/api/jobs/", None, 405, ""),
        ("GET", "/api/jobs/none", None, 404, "Job none does not exist"),
        ("POST", "/api/jobs/none/stop", None, 404, "Job none does not exist"),
        ("DELETE", "/api/jobs/none", None, 404, "Job none does not exist"),
        ("GET", "/api/jobs/none/logs", None, 404, "Job none does not exist"),
        ("POST", "/api/jobs/", b"{nonsense", 500, "no JSON"),
        ("POST", "/api/jobs/", {"entrypoint": "true", "colour": 1}, 400, "colour"),
        ("POST", "/api/jobs/", {"entrypoint": "true", "metadata": {"a": 1}}, 400, "metadata"),
        ("POST", "/api/jobs/", {}, 400, "entrypoint"),
        ("GET", "/api/packages/gcs/_ray_pkg_none.zip", None, 404, "_ray_pkg_none.zip"),
        ("PUT", "/api/packages/s3/_ray_pkg_none.zip", b"x", 500, "s3"),
        ("PUT", "/api/packages/gcs/..%2Fx", b"x", 404, ""),
        ("PUT", "/api/packages/gcs/.hidden", b"x", 500, "not a valid package name"),
    ],
)
def test_wrong_requests_are_refused(web, method, path, body, status, said):
    got, kind, text = web.ask(method, path, body)
    assert (got, kind) == (status, "text/plain; charset=utf-8") and said in text, text


def test_packages_in_several_pieces(web, running):
    # 20 MiB are sent in two pieces.
    data = os.urandom(1 << 20) * 20
    assert web.ask("PUT", "/api/packages/gcs/_ray_pkg_big.zip", data)[0] == 200
    assert web.ask("GET", "/api/packages/gcs/_ray_pkg_big.zip")[::2] == (200, "")
    program = (
        "import hashlib, sys; from ray import _raylet; from ray._private.runtime_env.packages import Source\n"
        "print(hashlib.sha256(Source(sys.argv[1], _raylet.auth_token(False)).read('_ray_pkg_big.zip')).hexdigest())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, running.address],
        env=running.env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    import hashlib

    assert done.stdout.strip() == hashlib.sha256(data).hexdigest(), done.stderr


def test_browsers_may_not_submit(web):
    assert web.ask("POST", "/api/jobs/", {"entrypoint": "true"}, Origin="http://elsewhere")[
        ::2
    ] == (405, "'POST' method not allowed for browser traffic.")


def test_browsers_do_not_see_values_of_variables(web):
    job = web.submit("true", runtime_env={"env_vars": {"SECRET": "sesame"}})
    for path in (f"/api/jobs/{job}", "/api/jobs/"):
        page = web.ask("GET", path, **{"Sec-Fetch-Site": "same-origin"})[2]
        assert (
            "sesame" not in page
            and '"SECRET":"<redacted>"' in page
            and "sesame" in web.ask("GET", path)[2]
        )


def test_the_activity_of_drivers_is_told(web):
    driver = web.json("GET", "/api/component_activities")["driver"]
    assert driver["is_active"] in ("ACTIVE", "INACTIVE") and driver["timestamp"] > 0


# ---- rayctl


def test_rayctl_over_http(web, running, tmp_path):
    (tmp_path / "data.txt").write_text("content")
    there = {"RAY_API_SERVER_ADDRESS": "http://" + web.address}
    done = running.run(
        "job",
        "submit",
        "--submission-id",
        "over-http",
        "--working-dir",
        tmp_path,
        "--runtime-env-json",
        '{"env_vars": {"A": "b"}}',
        "--",
        "sh",
        "-c",
        "cat data.txt; echo $A; exit 9",
        **there,
    )
    assert done.returncode == 9, done.stderr
    assert (
        f"Job submission server address: http://{web.address}" in done.stdout
        and "contentb\n" in done.stdout
        and "Job 'over-http' failed" in done.stdout
    )
    assert "contentb\n" in running.ok("job", "logs", "over-http", **there)
    assert "contentb\n" in running.ok(
        "job", "logs", "-f", "over-http", "--address", f"http://{web.address}/"
    )
    assert "exit code 9" in running.ok("job", "status", "over-http", **there)
    assert "already exists" in running.fails(
        "job", "submit", "--submission-id", "over-http", "--", "true", **there
    )
    (job,) = [
        job
        for job in json.loads(running.ok("job", "list", "--format", "json", **there))
        if job["submission_id"] == "over-http"
    ]
    same = [
        job
        for job in json.loads(running.ok("job", "list", "--format", "json"))
        if job["submission_id"] == "over-http"
    ]
    assert [job] == same and job["driver_exit_code"] == 9
    assert "Job 'over-http' deleted successfully" in running.ok(
        "job", "delete", "over-http", **there
    )
    assert "does not exist" in running.fails("job", "status", "over-http", **there)
    running.ok(
        "job", "submit", "--no-wait", "--submission-id", "long", "--", "sleep", "1000", **there
    )
    assert "Stop it first" in running.fails("job", "delete", "long")
    assert "Job 'long' was stopped" in running.ok("job", "stop", "long", **there)
    assert "Job 'long' deleted successfully" in running.ok("job", "delete", "long")


def test_rayctl_lists_drivers(web, running):
    """`rayctl job list` shows the drivers below the submitted jobs, as GET /api/jobs/ does."""
    program = "import ray; ray.init(); print(ray.get_runtime_context().get_job_id())"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**running.env, "RAY_ADDRESS": running.address},
        capture_output=True,
        text=True,
        check=True,
    )
    driver = done.stdout.strip()
    running.ok("job", "submit", "--submission-id=beside-a-driver", "--", "true")
    listed = web.json("GET", "/api/jobs/")
    for where in ({}, {"RAY_API_SERVER_ADDRESS": "http://" + web.address}):
        assert json.loads(running.ok("job", "list", "--format=json", **where)) == listed
        text = running.ok("job", "list", **where)
        assert (
            "JobDetails(type=<JobType.DRIVER: 'DRIVER'>" in text
            and f"job_id='{driver}', submission_id=None, driver_info=DriverInfo(id='{driver}'"
            in text
        )
        assert text.index("submission_id='beside-a-driver'") < text.index(f"job_id='{driver}'")
        assert [driver, "DRIVER"] in [
            line.split()[:2]
            for line in running.ok("job", "list", "--format=table", **where).splitlines()
        ]
    running.ok("job", "delete", "beside-a-driver")


def test_rayctl_over_http_when_it_cannot(web, running):
    assert "127.0.0.1:1" in running.fails("job", "list", "--address", "http://127.0.0.1:1")
    assert "token" in running.fails(
        "job", "list", RAY_API_SERVER_ADDRESS="http://" + web.address, RAY_AUTH_TOKEN="f" * 64
    )
    assert "https" in running.fails("job", "list", "--address", "https://127.0.0.1:1")


def test_rayctl_says_what_the_entrypoint_holds(running):
    out = running.ok(
        "job",
        "submit",
        "--entrypoint-num-cpus",
        "1",
        "--entrypoint-memory",
        "1000",
        "--entrypoint-resources",
        '{"thing": 0.5}',
        "--",
        "echo",
        "held",
    )
    assert "held\n" in out
    for words in (
        ["--entrypoint-num-cpus", "much"],
        ["--entrypoint-memory", "1.5"],
        ["--entrypoint-resources", "[]"],
        ["--entrypoint-label-selector", '{"a": 1}'],
    ):
        assert words[0] in running.fails("job", "submit", *words, "--", "true", code=2)


# ---- what survives


def test_a_job_survives_its_client_and_the_head(tmp_path):
    with cluster(connect=False) as c:
        web = Web(c.shell, c.address)
        go = tmp_path / "go"
        program = f"echo begun; sh -c 'echo $$ > {tmp_path}/child; while [ ! -e {go} ]; do sleep 0.05; done'; echo over; exit 3"
        ended = web.submit("echo done before")
        web.ended(ended)
        follower = subprocess.Popen(
            c.shell.command("job", "submit", "--submission-id", "long", "--", "sh", "-c", program),
            env={**c.shell.env, "RAY_ADDRESS": c.address},
            cwd=c.shell.scratch,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert eventually(
            lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text()
        )
        another = subprocess.Popen(
            c.shell.command("job", "logs", "-f", "long"),
            env={**c.shell.env, "RAY_ADDRESS": c.address},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        another.kill()
        another.wait()
        c.kill(c.head_node, "ray-head")
        c.shell.ok("start", "--head", f"--port={c.port}")
        again = Web(c.shell, c.address)
        assert eventually(lambda: again.json("GET", "/api/jobs/long")["status"] == "RUNNING")
        assert (
            again.json("GET", f"/api/jobs/{ended}")["status"] == "SUCCEEDED"
            and "done before\n" in again.json("GET", f"/api/jobs/{ended}/logs")["logs"]
        )
        go.touch()
        out, errors = follower.communicate(timeout=60)
        followed = out.partition("Tailing logs")[2].partition("Job 'long' failed")[0].splitlines()
        assert (
            follower.returncode == 3 and followed.count("begun") == followed.count("over") == 1
        ), (out, errors)
        job = again.ended("long")
        assert (job["status"], job["driver_exit_code"]) == ("FAILED", 3)


def test_the_whole_group_ends_with_its_job(tmp_path, running, web):
    job = web.submit(f"sleep 1000 & echo $! > {tmp_path}/child; wait")
    assert eventually(
        lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text().strip()
    )
    child = int((tmp_path / "child").read_text())
    assert web.json("POST", f"/api/jobs/{job}/stop") == {"stopped": True}
    assert web.ended(job)["status"] == "STOPPED"
    assert eventually(lambda: not alive(child))
    # A shell that dies without being asked leaves nothing either.
    job = web.submit(f"sleep 1000 & echo $! > {tmp_path}/other; echo $$ > {tmp_path}/shell; wait")
    assert eventually(
        lambda: (tmp_path / "shell").exists() and (tmp_path / "shell").read_text().strip()
    )
    os.kill(int((tmp_path / "shell").read_text()), signal.SIGKILL)
    assert re.search("killed by signal 9", web.ended(job)["message"])
    assert eventually(lambda: not alive(int((tmp_path / "other").read_text())))
