"""`rayctl start` with invalid addresses, ports and settings, and what commands do with words that
begin with a dash."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import pytest
from http_api import Api
from waiting import eventually


@pytest.mark.parametrize("host", ["192.0.2.77", "999.1.1.1", "no-such-name.invalid"])
def test_a_dashboard_host_that_is_none_of_this_machine(shell, host):
    said = shell.fails("start", "--head", "--port=0", f"--dashboard-host={host}", code=2)
    assert f"--dashboard-host is '{host}', where this machine cannot listen: " in said
    assert not shell.processes() and not list(shell.root.glob("session_*"))
    done = subprocess.run(
        [sys.executable, "-c", f"import ray; ray.init(num_cpus=1, dashboard_host={host!r})"],
        env=shell.env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1 and f"ValueError: --dashboard-host is '{host}'" in done.stderr


@pytest.mark.parametrize(
    "option",
    ["--port", "--dashboard-port", "--node-manager-port", "--metrics-export-port"],
)
@pytest.mark.parametrize("port", ["65536", "-1", "x"])
def test_a_port_that_is_none(shell, option, port):
    words = ["start", "--head", f"{option}={port}"]
    said = shell.fails(*words, *(["--port=0"] if option != "--port" else []), code=2)
    assert f"{option} is '{port}': it takes a whole number from 0 to 65535" in said
    assert not shell.processes() and not list(shell.root.glob("session_*"))


@pytest.mark.parametrize("option", ["--port", "--node-manager-port", "--metrics-export-port"])
def test_a_port_that_is_taken(shell, option):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = ["start", "--head", f"{option}={port}"]
        said = shell.fails(*words, *(["--port=0"] if option != "--port" else []))
    assert f"port {port} on 127.0.0.1 is in use: choose another with {option}" in said
    assert not shell.processes() and not list(shell.root.glob("session_*"))


@pytest.mark.parametrize(
    "one, other",
    [
        ("--port", "--node-manager-port"),
        ("--port", "--dashboard-port"),
        ("--node-manager-port", "--metrics-export-port"),
    ],
)
def test_one_port_for_two_purposes(shell, one, other):
    words = ["--port=0"] if one != "--port" else []
    said = shell.fails("start", "--head", *words, f"{one}=61999", f"{other}=61999", code=2)
    assert one in said and other in said and "are both 61999: give each its own" in said
    assert not shell.processes() and not list(shell.root.glob("session_*"))


@pytest.mark.parametrize(
    "program", ["no-such-python", "/no/such/python", "/usr/bin", "/dev/null", "."]
)
def test_an_interpreter_that_cannot_be_run(shell, program):
    said = shell.fails("start", "--head", "--port=0", code=2, RAY_PYTHON=program)
    assert f"RAY_PYTHON is '{program}': the workers' interpreter cannot be run: " in said
    assert not shell.processes() and not list(shell.root.glob("session_*"))


def test_an_interpreter_by_its_name_alone(shell):
    python = pathlib.Path(sys.executable)
    path = f"{python.parent}:{os.environ['PATH']}"
    shell.ok("start", "--head", "--port=0", RAY_PYTHON=python.name, PATH=path)
    shell.ok("job", "submit", "--", "true")
    (link,) = shell.root.glob("session_2*/bin/python")
    assert link.readlink() == python


def test_a_setting_that_is_misspelt_in_the_environment(shell):
    environment = {
        "RAY_node_timout_ms": "1",
        "RAY_NODE_TIMEOUT_MS": "2",
        "RAY_ADDRESS_OF_MINE": "3",
        "RAY_TRAIN_ENABLE_V2": "4",
        "RAY_far_from_all_settings": "5",
    }
    effect = "the environment variable {} has no effect: no setting has this name, and the nearest one is RAY_node_timeout_ms"
    sentences = {effect.format(name) for name in ("RAY_NODE_TIMEOUT_MS", "RAY_node_timout_ms")}
    sentences.add(
        "the environment variable RAY_far_from_all_settings has no effect: no setting has this name (docs/configuration.md lists them)"
    )
    done = shell.run("start", "--head", "--port=0", "--dashboard-port=0", **environment)
    assert done.returncode == 0
    assert set(done.stderr.splitlines()) == {f"Warning: {one}." for one in sentences}
    (session,) = shell.root.glob("session_2*")
    for daemon in ("head", "node-manager", "object-store"):
        log = (session / "logs" / f"{daemon}.log").read_text()
        assert all(log.count(one) == 1 for one in sentences) and log.count("has no effect") == 3
    program = "import ray; ray.init(); ray.get(ray.remote(lambda: 1).remote()); ray.shutdown(); ray.init()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**shell.env, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert all(done.stderr.count(one) == 1 for one in sentences), done.stderr


@pytest.mark.parametrize("submission_id", ["-x", "--address"])
def test_a_submission_id_that_begins_with_a_dash_is_refused(shell, submission_id):
    """Every command that is given such an id would take it for an option."""
    output = shell.ok("start", "--head", "--port=0", "--dashboard-port=0", "--num-cpus=1")
    refusal = "does not begin with '-', which commands would take for an option"
    words = ["job", "submit", f"--submission-id={submission_id}", "--", "true"]
    assert refusal in shell.fails(*words)
    api = Api.of(shell, output)
    request = json.dumps({"entrypoint": "true", "submission_id": submission_id})
    status, _, said = api.request("POST", "/api/jobs/", body=request)
    assert status == 400 and refusal in said.decode()
    program = (
        "import sys; from ray.job_submission import JobSubmissionClient as Client;"
        "Client(sys.argv[1]).submit_job(entrypoint='true', submission_id=sys.argv[2])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, f"http://{api.address}", submission_id],
        env=shell.env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1 and refusal in done.stderr


def test_stop_gives_every_process_the_whole_grace_period(shell):
    shell.ok("start", "--head", "--port=0", "--dashboard-port=0", "--num-cpus=1")
    record = json.loads(next(shell.root.glob("session_2*/node_*.json")).read_text())
    for process in record["processes"]:
        os.kill(process["pid"], signal.SIGSTOP)
    begin = time.monotonic()
    said = shell.ok("stop", "--grace-period=3")
    assert time.monotonic() - begin >= 3
    assert "Stopped only 0 out of 3 Ray processes within the grace period of 3 s" in said
    assert eventually(lambda: not shell.processes()), shell.processes()
