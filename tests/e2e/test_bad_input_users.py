"""Another user of the machine can write where the sessions are, and still gets no process ended, no
file removed and no token."""

import json
import os
import pathlib
import socket
import stat
import subprocess
import sys
import threading

import pytest

from ports import free_port
from shell import BIN
from waiting import PATIENCE_S

NOBODY = 65534
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


def as_nobody(script, *words):
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, words)],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        cwd="/",
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


PLANT = """
import os, sys
session, *files = sys.argv[1:]
os.makedirs(session, exist_ok=True)
for path, content in zip(files[::2], files[1::2]):
    with open(path, "w") as file:
        file.write(content)
"""


@pytest.fixture
def open_shell(shell):
    shell.scratch.chmod(0o755)
    shell.root.mkdir()
    shell.root.chmod(0o1777)
    return shell


class Listener:
    """Accepts connections and keeps the first bytes of each."""

    def __init__(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.server.getsockname()[1]
        self.heard = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        while True:
            try:
                peer, _ = self.server.accept()
            except OSError:
                return
            with peer:
                self.heard.append(peer.recv(4096))


def test_a_record_of_another_user_ends_nothing(open_shell):
    shell = open_shell
    precious = shell.scratch / "elsewhere" / "sockets"
    precious.mkdir(parents=True)
    with subprocess.Popen(["sleep", "60"]) as bystander:
        try:
            start_time = (
                pathlib.Path(f"/proc/{bystander.pid}/stat")
                .read_text()
                .rpartition(")")[2]
                .split()[19]
            )
            record = {
                "session_dir": f"{shell.root}/session_x/link/session_x",
                "session_name": "s",
                "head_address": "127.0.0.1:1",
                "node_ip": "127.0.0.1",
                "node_manager_port": 1,
                "node_manager_socket": "",
                "object_store_socket": "",
                "node_id": "1",
                "processes": [
                    {
                        "name": "ray-head",
                        "pid": bystander.pid,
                        "start_time": int(start_time),
                        "command": ["/bin/false"],
                    }
                ],
            }
            as_nobody(
                PLANT
                + "os.mkdir(session + '/link'); os.symlink(sys.argv[4], session + '/link/session_x'); os.mkfifo(session + '/node_2.json')",
                shell.root / "session_x",
                shell.root / "session_x" / "node_1.json",
                json.dumps(record),
                precious.parent,
            )
            assert "Did not find any active Ray processes" in shell.ok("stop", "--force")
            assert bystander.poll() is None and precious.exists()
        finally:
            bystander.kill()


@pytest.mark.parametrize("how", ["rayctl", "ray.init"])
def test_an_address_of_another_user_gets_no_token(open_shell, how):
    shell = open_shell
    token = shell.ok("get-auth-token", "--generate").strip()
    listener = Listener()
    as_nobody(
        PLANT, shell.root / "session_x", shell.root / "ray_current_cluster", listener.address + "\n"
    )
    if how == "rayctl":
        assert "is not a regular file of this user" in shell.fails("status")
    else:
        done = subprocess.run(
            [sys.executable, "-c", "import ray; ray.init(address='auto')"],
            env=shell.env,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert "ConnectionError" in done.stderr
    listener.server.close()
    assert not any(token.encode() in heard for heard in listener.heard)


def test_a_node_of_another_user_is_called_that(open_shell):
    shell = open_shell
    port = free_port()
    shell.ok("start", "--head", f"--port={port}", "--num-cpus=1", "--object-store-memory=100000000")
    own = {
        "RAY_TMPDIR": str(shell.scratch / "own"),
        "RAY_AUTH_TOKEN": shell.ok("get-auth-token").strip(),
    }
    done = subprocess.run(
        [sys.executable, "-c", f"import ray; ray.init(address='127.0.0.1:{port}')"],
        env={**shell.env, **own},
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (
        "is another user's" in done.stderr
        and f"rayctl start --address=127.0.0.1:{port}" in done.stderr
    ), done.stderr


@pytest.mark.parametrize("command", ["launch-prometheus", "shutdown-prometheus"])
def test_a_prometheus_of_another_user_ends_nothing_and_gets_no_token(open_shell, command):
    shell = open_shell
    shell.ok("start", "--head", "--port=0", "--num-cpus=1", "--object-store-memory=100000000")
    with subprocess.Popen(["sleep", "60"]) as bystander:
        try:
            start_time = pathlib.Path(f"/proc/{bystander.pid}/stat").read_text()
            record = {
                "pid": bystander.pid,
                "start_time": int(start_time.rpartition(")")[2].split()[19]),
                "port": 1,
            }
            directory = shell.root / "prometheus"
            as_nobody(PLANT, directory, directory / "process.json", json.dumps(record))
            assert f"{directory} is not a directory of this user" in shell.fails("metrics", command)
            assert bystander.poll() is None
            assert [one.name for one in directory.iterdir()] == ["process.json"]
        finally:
            bystander.kill()


def test_a_lock_of_another_user_holds_up_no_stop(open_shell):
    shell = open_shell
    holding = """
import fcntl
fcntl.flock(os.open(session, os.O_RDONLY), fcntl.LOCK_EX)
print(flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", PLANT + holding, shell.root / "session_x" / "sockets"],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        holder.stdout.readline()
        assert "Did not find any active Ray processes" in shell.ok("stop", timeout=120)
        holder.stdin.close()


def test_a_root_of_another_user_is_refused(open_shell):
    os.chown(open_shell.root, NOBODY, NOBODY)
    assert "belongs to another user (uid 65534)" in open_shell.fails("start", "--head", "--port=0")
    assert not list(open_shell.root.iterdir())


START = ["start", "--head", "--port=0", "--num-cpus=1", "--object-store-memory=100000000"]


def test_durable_state_is_for_its_owner_only(shell):
    state = shell.scratch / "state"
    shell.ok(*START, f"--state-dir={state}")
    for path in [state, *state.iterdir()]:
        assert not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO), path


@pytest.mark.parametrize("theirs", ["", "head.sqlite", "head.sqlite-wal", "history.sqlite"])
def test_a_state_directory_with_something_of_another_user_is_refused(shell, theirs):
    state = shell.scratch / "state"
    state.mkdir()
    planted = state / theirs
    planted.touch()
    os.chown(planted, NOBODY, NOBODY)
    said = shell.fails(*START, f"--state-dir={state}")
    assert f"cannot use {planted} for" in said and "another user (uid 65534)" in said
    assert "give another --state-dir" in said
    if theirs:
        assert planted.stat().st_size == 0


DAEMONS = {
    "head": ["ray-head", "--host", "127.0.0.1"],
    "node-manager": ["ray-node-manager", "--head-address", "127.0.0.1:1"],
    "object-store": ["ray-object-store", "--socket", "x", "--memory", "100000000"],
}


def run_daemon(shell, name, *more):
    program, *words = DAEMONS[name]
    return subprocess.run(
        [BIN / program, *words, "--session-dir", shell.scratch / "session", *more],
        env={**shell.env, "RAY_AUTH_TOKEN": "f" * 64},
        cwd=shell.scratch,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


@pytest.mark.parametrize("name", DAEMONS)
def test_a_daemon_by_hand_refuses_the_session_of_another_user(shell, name):
    session, victim = shell.scratch / "session", shell.scratch / "victim"
    victim.write_text("kept")
    (session / "logs").mkdir(parents=True)
    (session / "logs").chmod(0o777)
    (session / "logs" / f"{name}.log").symlink_to(victim)
    os.chown(session / "logs", NOBODY, NOBODY)
    done = run_daemon(shell, name, "--port", "0")
    assert done.returncode == 1, done.stderr
    assert f"cannot use {session}/logs for the session's files" in done.stderr
    assert "another user (uid 65534)" in done.stderr and "--session-dir" in done.stderr
    assert victim.read_text() == "kept"


def test_the_files_of_a_daemon_by_hand_are_for_its_owner_only(shell):
    with socket.create_server(("127.0.0.1", 0)) as busy:
        # The head has opened its log when it finds the port in use.
        done = run_daemon(shell, "head", "--port", str(busy.getsockname()[1]))
    assert done.returncode == 1 and "in use" in done.stderr, done.stderr
    session = shell.scratch / "session"
    assert "in use" in (session / "logs" / "head.log").read_text()
    for path in [session, *session.rglob("*")]:
        assert not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO), path
