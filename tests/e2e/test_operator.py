"""Problems that operators had: followers that crowd others out, names with control characters for
terminals, jobs that were never submitted, paths that are no files."""

import json
import select
import shutil

import pytest
from cluster import Cluster, alive, world
from waiting import eventually
from http_api import Api

import ray

FOLLOWERS = 128


@pytest.fixture(scope="module")
def running():
    with world() as shell:
        cluster = Cluster(shell, dashboard_port=0)
        cluster.api = Api.of(shell, cluster.output)
        ray.init(address=cluster.address, log_to_driver=False)
        yield cluster


def test_followers_of_logs_leave_room_for_others(running):
    def follow(path):
        connection = running.api.connect()
        connection.request("GET", path, headers={"Authorization": f"Bearer {running.api.token}"})
        return connection

    (node,) = [record["node_id"] for record in running.records().values()]
    stream = f"/api/v0/logs/stream?node_id={node}&filename=head.log"
    waiting = [follow(stream) for _ in range(FOLLOWERS)]
    try:
        assert eventually(
            lambda: (
                len(select.select([connection.sock for connection in waiting], [], [], 0)[0])
                == FOLLOWERS
            ),
            30,
        ), "each is answered"
        status, _, said = running.api.request("GET", stream)
        assert status == 429 and b"128 simultaneous followers of logs" in said, (status, said)
        assert (
            running.api.request("GET", "/api/healthz", token=False)[0] == 200
            and running.api.get("/api/v0/nodes")[0] == 200
        )
    finally:
        for connection in waiting:
            connection.close()

    def one_more():
        connection = follow(stream)
        try:
            return connection.getresponse().status == 200
        finally:
            connection.close()

    assert eventually(one_more)


NAMES = """
import ray, time
ray.init(address="auto", namespace="n")
@ray.remote(num_cpus=0)
class Painted:
    def wait(self): time.sleep(1000)
painted = Painted.options(name="a\\x1b[31mred\\nb", lifetime="detached").remote()
painted.wait.options(name="t\\x1b]0;title\\x07").remote()
print("ready", flush=True)
time.sleep(1000)
"""


def test_what_others_named_paints_on_no_terminal(running):
    program = running.program(NAMES)
    try:
        assert program.stdout.readline() == "ready\n"
        assert eventually(lambda: "a\\x1b[31mred b" in running.shell.ok("list", "actors"))
        assert eventually(lambda: "t\\x1b]0;title\\x07" in running.shell.ok("list", "tasks"))
        for words in (
            ["list", "actors", "--detail"],
            ["list", "tasks"],
            ["summary", "tasks"],
            ["summary", "actors"],
            ["top", "-n", "1"],
            ["stack"],
            ["nodes"],
            ["status"],
            ["memory"],
        ):
            text = running.shell.ok(*words)
            assert not [c for c in text if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160], (
                words
            )
        (row,) = json.loads(running.shell.ok("list", "actors", "--format", "json"))
        assert row["name"] == "a\x1b[31mred\nb", "programs see what it is"
    finally:
        program.kill()
        program.wait()
        program.stdout.close()
        ray.kill(ray.get_actor("a\x1b[31mred\nb", namespace="n"))


@pytest.mark.parametrize("over_http", [False, True])
def test_a_driver_is_a_job_that_was_not_submitted(running, over_http):
    job = ray.get_runtime_context().get_job_id()
    address = "--address=" + (f"http://{running.api.address}" if over_http else running.address)
    assert f"Status for job '{job}': RUNNING" in running.shell.ok("job", "status", address, job)
    for command in ("stop", "logs", "delete"):
        assert "submission type jobs" in running.shell.fails("job", command, address, job), command
        assert "does not exist" in running.shell.fails("job", command, address, "77000000")
    running.shell.ok(
        "job",
        "submit",
        address,
        "--submission-id",
        f"mine{over_http}",
        "--",
        "python",
        "-c",
        "import ray; ray.init()",
    )
    (row,) = [
        row
        for row in json.loads(running.shell.ok("job", "list", "--format", "json"))
        if row["submission_id"] == f"mine{over_http}"
    ]
    assert f"Job 'mine{over_http}' succeeded" in running.shell.ok(
        "job", "status", address, row["job_id"]
    ), "either name"


def test_an_entrypoint_that_was_not_started_is_no_exit_code_of_it(running):
    for address in (running.address, f"http://{running.api.address}"):
        done = running.shell.run(
            "job",
            "submit",
            f"--address={address}",
            "--working-dir",
            "file:///no/such/archive.zip",
            "--",
            "true",
        )
        assert done.returncode == 1 and "the entrypoint was not started" in done.stdout, (
            done.stdout,
            done.stderr,
        )


def test_a_name_of_no_log_is_said(running):
    said = running.shell.fails("logs", "nosuchfile")
    assert "no log file of node" in said and "'nosuchfile'" in said
    assert "not the name of a log file" in running.shell.fails("logs", "../../../../etc/passwd")
    assert "Node ID:" in running.shell.ok("logs")


def test_a_trace_to_standard_output(running):
    ray.get(ray.remote(lambda: 1).remote())
    assert eventually(
        lambda: [
            event
            for event in json.loads(running.shell.ok("timeline", "-o", "-"))
            if event.get("ph") == "X"
        ]
    )
    assert not (running.shell.scratch / "-").exists()


@pytest.mark.parametrize(
    "words, code",
    [
        (["memory"], 1),
        (["timeline"], 1),
        (["status"], 1),
        (["list", "actors"], 1),
    ],
)
def test_a_token_file_that_is_missing_is_no_fault_of_the_words(running, words, code):
    assert "/nonexistent/token" in running.shell.fails(
        *words, code=code, RAY_AUTH_TOKEN_PATH="/nonexistent/token", RAY_AUTH_TOKEN=""
    )


@pytest.mark.parametrize(
    "words",
    [
        ["--runtime-env-json", "{"],
        ["--runtime-env-json", "[1]"],
        ["--runtime-env-json", "{}", "--runtime-env", "x.yaml"],
    ],
)
def test_a_runtime_environment_that_is_none(running, words):
    running.shell.fails("job", "submit", *words, "--", "true", code=2)


def test_packages_have_their_bounds():
    with world() as shell:
        cluster = Cluster(shell, dashboard_port=0, settings={"packages_max_bytes": 8_000_000})
        api = Api.of(shell, cluster.output)

        def upload(name, size):
            status, _, said = api.request(
                "PUT",
                f"/api/packages/gcs/{name}",
                body=b"x" * size,
                headers={"Content-Type": "application/octet-stream"},
            )
            return status, said.decode()

        assert upload("_ray_pkg_a.zip", 5_000_000)[0] == 200
        status, said = upload("_ray_pkg_b.zip", 5_000_000)
        assert status >= 400 and "packages_max_bytes (8000000)" in said, (
            "the first was just uploaded: its job may come"
        )
        assert (
            api.request("GET", "/api/packages/gcs/_ray_pkg_b.zip")[0] == 404
            and api.request("GET", "/api/packages/gcs/_ray_pkg_a.zip")[0] == 200
        )


def test_a_refused_token_is_named_by_its_source(running):
    other = running.shell.scratch / "other_token"
    other.write_text("f" * 64 + "\n")
    other.chmod(0o600)
    for given, source in (
        ({"RAY_AUTH_TOKEN": "f" * 64}, "RAY_AUTH_TOKEN"),
        ({"RAY_AUTH_TOKEN_PATH": str(other)}, f"the file {other} (RAY_AUTH_TOKEN_PATH)"),
    ):
        for words in (["status"], ["start", f"--address={running.address}"], ["job", "list"]):
            said = running.shell.fails(*words, RAY_ADDRESS=running.address, **given)
            assert f"the token in {source} is not the one of this cluster" in said


def remove_tree(path):
    """Removes a directory, although a daemon may write a file into it meanwhile; returns whether it
    is gone."""
    shutil.rmtree(path, ignore_errors=True)
    return not path.exists()


def test_a_cluster_whose_files_were_removed_can_still_be_stopped():
    """A cleaner of /tmp may remove the files of a running cluster."""
    with world() as shell:
        cluster = Cluster(shell)
        pids = [
            process["pid"] for node in cluster.records().values() for process in node["processes"]
        ]
        assert len(pids) == 3
        assert eventually(lambda: remove_tree(shell.root))
        said = shell.fails("health-check", f"--address={cluster.address}")
        assert "head.sqlite was removed while the head ran" in said, said
        assert "Stopped all 3 Ray processes" in shell.ok("stop")
        assert not any(alive(pid) for pid in pids)
        shell.ok("start", "--head", f"--port={cluster.port}", "--num-cpus=1")


def test_what_goes_on_without_its_head_has_not_ended():
    with world() as shell:
        cluster = Cluster(shell)
        cluster.kill(cluster.head_node, "ray-head")
        said = shell.fails("status")
        assert "goes on and waits for a head" in said and f"--port={cluster.port}" in said, said
