"""Profiles of training runs as people ask for them, by `rayctl train profile` and over HTTP."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

import pytest
from cluster import cluster, kill
from http_api import Api
from ports import free_port
from profiled_run import Controller
from waiting import until

import ray
from ray import _raylet

RUNS = "/api/train/v2/runs/v1"


class Made:
    """A cluster with a run `digits` (id RUN) whose controller is a stand-in."""

    RUN = "aa" * 16

    def __init__(self, running, folder):
        self.shell, self.address, self.folder = running.shell, running.address, folder
        self.api = Api.of(running.shell, running.output)
        # A controller without a handle would end.
        self.kept = []
        self.controller = self.begin("digits", self.RUN)

    def begin(self, name, run_id, folder=None, **more):
        controller = Controller.remote(name, run_id, str(folder or self.folder), **more)
        ray.get(controller.pid.remote())
        self.kept.append(controller)
        return controller

    def words(self, *words, over_http=False):
        address = f"http://{self.api.address}" if over_http else self.address
        return ["train", *words, f"--address={address}"]

    def post(self, request, run_id=RUN):
        """Requests a profile; returns (status, answer)."""
        status, _, body = self.api.request(
            "POST", f"{RUNS}/{run_id}/profile", body=json.dumps(request)
        )
        return status, json.loads(body)

    def profiles(self, run_id=RUN):
        status, answer = self.api.get(f"{RUNS}/{run_id}/profiles")
        assert status == 200, answer
        return answer


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with cluster(dashboard_port=0, connect=False) as running:
        ray.init(address=running.address, log_to_driver=False)
        yield Made(running, tmp_path_factory.mktemp("runs"))


@pytest.fixture(params=["rpc", "http"])
def over_http(request):
    return request.param == "http"


def test_a_profile_is_recorded_and_named(made, over_http):
    words = made.words("profile", "digits", over_http=over_http)
    text = made.shell.ok(*words)
    assert "Profile: where the time went." in text
    newest = made.profiles()["profiles"][-1]
    assert newest["path"] in text and newest["trace"] in text
    shown = made.shell.ok(*made.words("show", "digits", over_http=over_http))
    assert newest["id"] in shown and "1 of 2" in shown and newest["path"] in shown
    known = json.loads(
        made.shell.ok(*made.words("show", "digits", "--format=json", over_http=over_http))
    )
    assert known["profiles"][-1] == newest and known["tensorboard"] is None


def test_what_the_options_ask_for(made, over_http):
    asked = [
        ([], {"steps": 3, "ranks": None, "timeout_s": 120}, (True, True, True)),
        (
            ["--steps=2", "--ranks=0,1", "--timeout=7", "--no-stack", "--no-memory", "--no-shapes"],
            {"steps": 2, "ranks": [0, 1], "timeout_s": 7},
            (False, False, False),
        ),
    ]
    for options, fields, flags in asked:
        words = made.words("profile", "digits", "--format=json", *options, over_http=over_http)
        flags = dict(zip(("record_shapes", "profile_memory", "with_stack"), flags))
        request = json.loads(made.shell.ok(*words))["request"]
        assert request == {**fields, **flags, "run_id": made.RUN}


def test_wrong_options_are_refused(made):
    for options, words in (
        (["--steps=0"], "--steps is '0'"),
        (["--steps=1001"], "--steps is '1001'"),
        (["--ranks=0,,1"], "--ranks is '0,,1': it takes numbers of ranks, such as 0,2"),
        (["--ranks=-1"], "--ranks is '-1'"),
        (["--timeout=0"], "--timeout is '0'"),
    ):
        error = made.shell.fails(*made.words("profile", "digits", *options), code=2)
        assert words in error, error


def test_what_the_controller_refuses(made, over_http):
    for steps, words in (
        (404, "the run has no rank 9: its ranks are 0 to 1"),
        (500, "another profile is under way"),
        (600, "command train_profile failed: Defect: of a program"),
    ):
        words_of = made.words("profile", "digits", f"--steps={steps}", over_http=over_http)
        assert made.shell.fails(*words_of) == f"Error: {words}\n"


def test_runs_that_take_no_profile(made, over_http):
    def error(name):
        return made.shell.fails(*made.words("profile", name, over_http=over_http))

    assert "no training run has the name or id 'absent'" in error("absent")
    number = "b1" if over_http else "b2"
    ended = made.begin("ended", number * 16)
    ray.get(ended.write.remote(status="FINISHED", end_time_ns=time.time_ns()))
    assert "run ended has ended (FINISHED): only a run that is under way" in error("ended")
    made.begin("mute", number[::-1] * 16, offers=False)
    assert "run mute takes no profiles now: its controller is just starting or ending" in error(
        "mute"
    )
    gone = made.begin("gone", number[0] * 32)
    kill(ray.get(gone.pid.remote()))
    until(lambda: error("gone"), lambda text: "run gone has ended (ABORTED)" in text)


def test_a_head_that_is_not_there(made):
    for address in (f"127.0.0.1:{free_port()}", f"http://127.0.0.1:{free_port()}"):
        for command in ("profile", "tensorboard"):
            error = made.shell.fails("train", command, "digits", f"--address={address}")
            assert address.removeprefix("http://") in error


def test_a_controller_that_dies_meanwhile(made, over_http, tmp_path):
    name = "dies-http" if over_http else "dies"
    controller = made.begin(name, ("d1" if over_http else "d2") * 16, tmp_path)
    pid = ray.get(controller.pid.remote())
    words = made.words("profile", name, "--steps=5", "--timeout=3600", over_http=over_http)
    asking = subprocess.Popen(
        made.shell.command(*words), env=made.shell.env, stderr=subprocess.PIPE, text=True
    )
    until((tmp_path / "waits").exists)
    kill(pid)
    _, error = asking.communicate(timeout=60)
    assert asking.returncode == 1
    assert error.startswith(f"Error: the controller of run {name} ended during the profile ("), (
        error
    )


def test_a_profile_goes_on_after_ctrl_c(made, over_http, tmp_path):
    name, run_id = ("goes-http", "e1" * 16) if over_http else ("goes", "e2" * 16)
    made.begin(name, run_id, tmp_path)
    words = made.words("profile", name, "--steps=5", over_http=over_http)
    asking = subprocess.Popen(made.shell.command(*words), env=made.shell.env)
    until((tmp_path / "waits").exists)
    asking.send_signal(signal.SIGINT)
    assert asking.wait(60) == -signal.SIGINT
    (tmp_path / "go").touch()
    until(lambda: made.profiles(run_id)["profiles"])
    made.shell.ok(*made.words("profile", name, over_http=over_http))


def test_profiles_are_requested_over_http(made):
    status, answer = made.post({"steps": 2})
    assert status == 200 and answer["request"] == {"steps": 2, "run_id": made.RUN}
    assert made.post({"steps": 404})[0] == 400
    status, answer = made.post({"steps": 500})
    assert status == 500 and answer["msg"] == "another profile is under way"
    assert made.post({}, run_id="ab" * 16)[0] == 404
    assert made.api.get(f"{RUNS}/{'ab' * 16}/profiles")[0] == 404
    for body in ("[1]", "{", '"text"'):
        status, _, text = made.api.request("POST", f"{RUNS}/{made.RUN}/profile", body=body)
        assert status == 400 and b"must be a JSON object" in text


def test_a_run_without_profiles(made):
    made.begin("new", "f0" * 16)
    assert made.profiles("f0" * 16) == {"profiles": [], "tensorboard": None}
    assert "PROFILE" not in made.shell.ok(*made.words("show", "new"))


def test_the_page_s_request(made):
    path = f"{RUNS}/{made.RUN}/profile"
    query = {"steps": 1, "ranks": "0,2", "with_stack": 0, "profile_memory": 1}
    asks = {"X-Ray-Profile": "1", "User-Agent": "Mozilla"}
    status, answer = made.api.get(path, query, headers=asks)
    assert status == 200, answer
    fields = {"steps": 1, "ranks": [0, 2], "with_stack": False, "profile_memory": True}
    assert answer["request"] == {**fields, "run_id": made.RUN}
    status, answer = made.api.get(path, query)
    assert status == 400 and "send POST" in answer["msg"]
    for wrong in ({"ranks": "0,x"}, {"ranks": ""}, {"steps": "many"}):
        assert made.api.get(path, wrong, headers=asks)[0] == 400
    # A browser marks a request from a page of another site in this way, and the head refuses it.
    other = {**asks, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}
    assert made.api.request("GET", path, query, headers=other)[0] == 403


def test_the_merged_trace_among_the_logs(made):
    made.post({"steps": 1})
    newest = made.profiles()["profiles"][-1]
    query = {"node_id": newest["node_id"], "filename": newest["log_file"], "lines": -1}
    status, _, body = made.api.request("GET", "/api/v0/logs/file", query)
    assert status == 200 and len(json.loads(gzip.decompress(body))["traceEvents"]) == 1000


# A stand-in for the interpreter that has TensorBoard: it records how it is called and ended.
FAKE = """#!/usr/bin/python3
import os, signal, sys

def tell(text):
    with open(os.environ["RECORD"], "a") as file:
        print(text, file=file)

def end(*_):
    tell("ended")
    sys.exit(0)

if sys.argv[1] == "-c":
    if "HANGS" in os.environ:
        tell("asked")
        signal.pause()
    print(os.environ.get("MISSING", ""), end="")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
tell(" ".join(sys.argv[1:]))
tell(os.getpid())
print("a warning", file=sys.stderr)
print("TensorBoard 2.15.1 at http://localhost:6006/ (Press CTRL+C to quit)", file=sys.stderr)
if "BREAKS" in os.environ:
    sys.exit(3)
sys.stderr.flush()
while True:
    signal.pause()
"""


class Board:
    """Runs `rayctl train tensorboard` with a stand-in for the interpreter that has TensorBoard."""

    def __init__(self, made, directory):
        self.made, self.program, self.record = made, directory / "python", directory / "record"
        self.program.write_text(FAKE)
        self.program.chmod(0o755)
        self.variables = {"RECORD": str(self.record)}

    def words(self, *words):
        return self.made.words("tensorboard", "digits", f"--python={self.program}", *words)

    def start(self, *words):
        running = subprocess.Popen(
            self.made.shell.command(*self.words(*words)),
            env={**self.made.shell.env, **self.variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert running.stdout.readline() == (
            "TensorBoard shows the profiles of run digits at http://localhost:6006/\n"
        )
        return running

    def viewer(self):
        return self.made.profiles()["tensorboard"]


@pytest.fixture
def board(made, tmp_path):
    if not made.profiles()["profiles"]:
        made.post({"steps": 1})
    return Board(made, tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_tensorboard_is_linked_while_it_runs(board, number):
    running = board.start("--port=7007", "--host=0.0.0.0")
    assert until(board.viewer)["url"] == "http://localhost:6006/"
    shown = board.made.shell.ok(*board.made.words("show", "digits"))
    assert "TensorBoard: http://localhost:6006/" in shown
    running.send_signal(number)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 0 and errors == "a warning\n"
    assert board.viewer() is None
    assert _raylet.kv_get(b"train_tensorboards", board.made.RUN.encode()) is None
    words, _, end = board.record.read_text().splitlines()
    profiles = board.made.folder / "run.profiles"
    assert words == (f"-u -m tensorboard.main --logdir {profiles} --host 0.0.0.0 --port 7007")
    assert end == "ended"


def test_tensorboard_ends_with_a_rayctl_that_is_killed(board):
    running = board.start()
    until(board.viewer)
    pid = int(board.record.read_text().splitlines()[1])
    running.kill()
    running.communicate(timeout=60)
    until(lambda: not os.path.exists(f"/proc/{pid}"))
    assert board.record.read_text().endswith("ended\n")
    # The command could not remove its entry; an old entry is not shown.
    old = {**board.viewer(), "time_ms": 1000 * (time.time() - 60)}
    key = board.made.RUN.encode()
    _raylet.kv_put(b"train_tensorboards", key, json.dumps(old).encode(), True)
    assert board.viewer() is None
    _raylet.kv_delete(b"train_tensorboards", key)


def test_tensorboard_shows_the_logs_beside_the_profiles(board):
    logs = board.made.folder / "logs"
    logs.mkdir()
    running = board.start()
    links = (
        board.record.read_text().splitlines()[0].removeprefix("-u -m tensorboard.main --logdir ")
    )
    assert {name: os.readlink(f"{links}/{name}") for name in os.listdir(links)} == {
        "logs": str(logs),
        "profiles": str(board.made.folder / "run.profiles"),
    }
    running.terminate()
    running.communicate(timeout=60)
    assert not os.path.exists(links)
    logs.rmdir()


def test_an_interrupted_tensorboard_leaves_no_links(board, tmp_path):
    logs, place = board.made.folder / "logs", tmp_path / "place"
    logs.mkdir()
    place.mkdir()
    running = subprocess.Popen(
        board.made.shell.command(*board.words()),
        env={**board.made.shell.env, **board.variables, "HANGS": "1", "TMPDIR": str(place)},
    )
    until(board.record.exists)
    running.terminate()
    assert running.wait(timeout=60) == -signal.SIGTERM
    assert not list(place.iterdir())
    logs.rmdir()


def test_tensorboard_that_cannot_run(board, tmp_path):
    shell, program = board.made.shell, board.program
    error = shell.fails(*board.words(), MISSING="torch-tb-profiler\n", **board.variables)
    assert f"`{program} -m pip install torch-tb-profiler` installs it" in error
    missing = "tensorboard\ntorch-tb-profiler\n"
    error = shell.fails(*board.words(), MISSING=missing, **board.variables)
    assert "pip install tensorboard torch-tb-profiler`" in error
    error = shell.run(*board.words(), BREAKS="1", **board.variables)
    assert error.returncode == 1
    assert error.stderr == (
        "a warning\nError: TensorBoard ended by itself, with exit code 3: a warning\n"
    )
    assert board.viewer() is None
    error = shell.fails(*board.words(f"--logdir={tmp_path}/absent"))
    assert error == f"Error: --logdir {tmp_path}/absent: there is no such directory\n"
    absent = board.made.words("tensorboard", "digits", f"--python={tmp_path}/absent")
    assert f"--python {tmp_path}/absent: No such file" in shell.fails(*absent)
    board.made.begin("empty", "f1" * 16)
    words = board.made.words("tensorboard", "empty")
    assert "run empty has no profiles: `rayctl train profile empty` records one" in shell.fails(
        *words
    )


@pytest.mark.train_extras
def test_the_real_tensorboard(board):
    port = free_port()
    words = board.made.words(
        "tensorboard", "digits", f"--python={sys.executable}", f"--port={port}"
    )
    running = subprocess.Popen(
        board.made.shell.command(*words),
        env=board.made.shell.env,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert f"http://localhost:{port}/" in running.stdout.readline()
    url = until(board.viewer)["url"]
    with urllib.request.urlopen(f"{url}data/plugins_listing", timeout=60) as answer:
        assert "pytorch_profiler" in json.load(answer)
    running.terminate()
    running.communicate(timeout=60)
    assert running.returncode == 0 and board.viewer() is None
