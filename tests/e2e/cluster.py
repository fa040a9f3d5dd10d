"""A cluster on this machine for tests that break it: a head, nodes that join, and the means to end
any process by its id."""

import contextlib
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import textwrap

from shell import Shell
from ports import free_port
from waiting import PATIENCE_S, eventually

import ray


def kill(*pids):
    """Kills processes and waits until they are gone. A process that is ending keeps its sockets for
    longer than its command line, so that waiting for the latter would not do."""
    with contextlib.ExitStack() as opened:
        gone = []
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # It may have ended by itself.
                gone.append(os.pidfd_open(pid))
                opened.callback(os.close, gone[-1])
        for pid in pids:
            # The death of another one may have ended it.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for descriptor in gone:
            assert select.select([descriptor], [], [], 30)[0], pids


@contextlib.contextmanager
def stopped(pid):
    """Stops a process in this block, as if it hung: it neither answers nor ends, but a worker may
    be killed."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] not in "ZX"
    except OSError:
        return False


def unread(port):
    """Returns how many bytes have come to a port's connections that the listening process has not
    read."""
    lines = (line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:])
    return sum(
        int(fields[4].split(":")[1], 16)
        for fields in lines
        if int(fields[1].split(":")[1], 16) == port and fields[3] == "01"
    )


def processes_below(root):
    """Returns ids and command lines of all processes that belong to a temp root. A process that is
    ending has no command line any more and is left out."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"RAY_TMPDIR={root}\0".encode() in (entry / "environ").read_bytes() and alive(
                entry.name
            ):
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if line:
                    found[int(entry.name)] = line
        except OSError:
            pass
    return found


def running_dashboard(shell, address=None):
    """Returns HOST:PORT of the HTTP interface of a world's head."""
    program = "import sys; from ray._private.job_http import dashboard_of; print(dashboard_of(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", program, address or shell.address],
        env=shell.env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Cluster:
    """A head, and the nodes that join it. It finds daemons in the records of sessions, and all
    processes by the temp root in their environment."""

    def __init__(self, shell, cpus=2, settings=None, **options):
        self.shell = shell
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        words = [f"--port={self.port}", f"--num-cpus={cpus}", *self.words(options)]
        if settings:
            words += ["--system-config", json.dumps(settings)]
        self.head_node = self.start("--head", *words)

    @staticmethod
    def words(options):
        return [
            f"--{name.replace('_', '-')}={json.dumps(value) if isinstance(value, dict) else value}"
            for name, value in {"object_store_memory": 100_000_000, **options}.items()
        ]

    def start(self, *words):
        before = set(self.records())
        self.output = self.shell.ok("start", *words)
        (session,) = set(self.records()) - before
        return session

    def join(self, cpus=2, **options):
        """Adds a node; returns its session, for kill()."""
        return self.start(f"--address={self.address}", f"--num-cpus={cpus}", *self.words(options))

    def records(self):
        return {
            str(path): json.loads(path.read_text())
            for path in self.shell.root.glob("session_2*/node_*.json")
        }

    def node_id(self, session):
        return self.records()[session]["node_id"]

    def pid(self, session, program):
        return next(
            process["pid"]
            for process in self.records()[session]["processes"]
            if process["name"] == program
        )

    def kill(self, session, program):
        kill(self.pid(session, program))

    def state(self, node_id):
        return next((node for node in ray.nodes() if node["NodeID"] == node_id), None)

    def await_nodes(self, count, seconds=PATIENCE_S):
        assert eventually(lambda: sum(node["Alive"] for node in ray.nodes()) == count, seconds), (
            ray.nodes()
        )

    def await_idle(self, seconds=PATIENCE_S):
        """Waits until all resources that the nodes offer are free again."""

        def idle():
            free, total = ray.available_resources(), ray.cluster_resources()
            return all(free.get(name, 0) == amount for name, amount in total.items())

        assert eventually(idle, seconds), (ray.available_resources(), ray.cluster_resources())

    def processes(self):
        return processes_below(self.shell.root)

    def show(self, *commands):
        """Prints what these commands of rayctl say, for the reader of a failed test."""
        for words in commands:
            with contextlib.suppress(Exception):
                done = self.shell.run(*words, RAY_ADDRESS=self.address)
                print(done.stdout, done.stderr, flush=True)

    def program(self, text, *words, **popen):
        """Starts a program as another driver, with these words as its sys.argv[1:]."""
        popen = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, **popen}
        return subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(text), *map(str, words)],
            env={**self.shell.env, "RAY_ADDRESS": self.address},
            cwd=self.shell.scratch,
            **popen,
        )


@contextlib.contextmanager
def world(sockets_go=True):
    """Gives this process a temp root, home and token of its own, as if it were a user's shell. At
    the end nothing may be left there. Socket files of killed daemons may stay in a private
    cluster's session."""
    # An earlier test may have started a cluster by calling a task without ray.init().
    ray.shutdown()
    shell = Shell()
    saved = {name: os.environ.get(name) for name in ("HOME", "RAY_TMPDIR", "RAY_ADDRESS")}
    os.environ.update(HOME=str(shell.scratch), RAY_TMPDIR=str(shell.root))
    os.environ.pop("RAY_ADDRESS", None)
    try:
        yield shell
        ray.shutdown()
        shell.run("stop")
        left = eventually(lambda: not shell.processes()) or shell.processes()
        assert left is True, f"left behind: {left}"
        sockets = list(shell.root.glob("session_2*/sockets/*"))
        assert not sockets or not sockets_go, f"left behind: {sockets}"
    finally:
        ray.shutdown()
        shell.stop()
        for name, value in saved.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)


@contextlib.contextmanager
def cluster(cpus=2, connect=True, **options):
    with world() as shell:
        running = Cluster(shell, cpus, **options)
        if connect:
            ray.init(address=running.address, log_to_driver=False)
        yield running
