"""Watching, killing and restarting daemons that this process started; for ray.cluster_utils."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import time

_READY_TIMEOUT_S = 30.0
# Descriptors that a daemon inherits are moved above this number, because a daemon expects its own
# at certain low numbers.
_FIRST_FREE_FD = 100


def _start_time(pid: int) -> int:
    """The start time of a process in clock ticks since boot.

    Returns 0 when there is no such process or all of it has ended. A main thread that is a zombie
    is not enough: until its last thread has ended the process holds its descriptors, and so its
    ports.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            fields = stat.read().rsplit(b") ", 1)[1].split()
    except OSError:
        return 0
    threads = int(fields[17])
    return 0 if fields[0] in b"ZX" and threads <= 1 else int(fields[19])


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


class Daemon:
    """A daemon, identified by process id and start time, because ids are reused.

    It has `pid` and those methods of subprocess.Popen that also work for a process which another
    one runs.
    """

    def __init__(self, pid: int, start_time: int):
        self.pid = pid
        self.start_time = start_time or _start_time(pid)
        self.command = [
            os.fsdecode(word) for word in _read(f"/proc/{pid}/cmdline").split(b"\0")[:-1]
        ]
        self.environment = {
            name: value
            for name, _, value in (
                os.fsdecode(entry).partition("=")
                for entry in _read(f"/proc/{pid}/environ").split(b"\0")[:-1]
            )
        }
        with contextlib.suppress(OSError):
            self.command[0:1] = [os.readlink(f"/proc/{pid}/exe")]
        self.directory = os.path.dirname(self.command[0]) if self.command else ""

    def poll(self) -> int | None:
        """Returns None while the daemon runs, then 0: only its log knows how it ended."""
        if _start_time(self.pid) == self.start_time:
            return None
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)
        return 0

    def kill(self) -> None:
        """Sends SIGKILL, unless the process has ended, and returns when it has."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        while self.poll() is None:
            time.sleep(0.001)

    def __repr__(self) -> str:
        return f"Daemon(pid={self.pid})"


def _value_of(command: list[str], flag: str) -> int | None:
    return int(command[command.index(flag) + 1]) if flag in command else None


def _move_above_inherited(fd: int) -> int:
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE_FD)
    finally:
        os.close(fd)


def start_again(ended: Daemon, address: str, lifeline_fd: int, output: str) -> Daemon:
    """Runs a daemon's command again on the same address and returns when it has said READY.

    `lifeline_fd` is this process's end of the daemon's lifeline, -1 for none. Raises OSError when
    the port is taken, RuntimeError when the daemon does not come up.
    """
    host, _, port = address.rpartition(":")
    with contextlib.ExitStack() as stack:
        listener = _move_above_inherited(
            socket.create_server(
                (host.strip("[]"), int(port)),
                family=socket.AF_INET6 if "[" in host else socket.AF_INET,
            ).detach()
        )
        stack.callback(os.close, listener)
        inherited = [(os.POSIX_SPAWN_DUP2, listener, _value_of(ended.command, "--listen-fd"))]
        at = _value_of(ended.command, "--lifeline-fd")
        if at is not None:
            reader = _move_above_inherited(
                os.open(f"/proc/self/fd/{lifeline_fd}", os.O_RDONLY | os.O_CLOEXEC)
            )
            stack.callback(os.close, reader)
            inherited.append((os.POSIX_SPAWN_DUP2, reader, at))
        ready = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        ready.bind(f"\0ray-ready-{os.getpid()}-{os.urandom(8).hex()}")
        ready.settimeout(0.2)
        environment = {**ended.environment, "NOTIFY_SOCKET": "@" + ready.getsockname()[1:].decode()}
        appending = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        streams = [
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, output, appending, 0o644),
            (os.POSIX_SPAWN_OPEN, 2, output, appending, 0o644),
        ]
        pid = os.posix_spawn(
            ended.command[0],
            ended.command,
            environment,
            file_actions=streams + inherited,
            setsigdef=[signal.SIGPIPE, signal.SIGINT, signal.SIGTERM],
        )
        _await_ready(ready, pid, output)
        return Daemon(pid, 0)


def _await_ready(ready: socket.socket, pid: int, output: str) -> None:
    deadline = time.monotonic() + _READY_TIMEOUT_S
    while True:
        with contextlib.suppress(TimeoutError, socket.timeout):
            if b"READY=1" in ready.recv(4096).split(b"\n"):
                return
        if not _start_time(pid):
            os.waitpid(pid, os.WNOHANG)
            raise RuntimeError(f"the daemon ended; see {output}")
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise RuntimeError(
                f"the daemon did not come up in {_READY_TIMEOUT_S:.0f} s; see {output}"
            )
