"""Entry point of a worker process: called in a child of the fork server, which has imported this module before it forks.

What is imported here is shared by all workers of a node (copy on write); nothing of it may start a thread.
"""
from __future__ import annotations

import io
import os
import signal
import stat
import sys
import threading
import time

import ray
import ray._private.errors
import ray.actor
import ray.cloudpickle
import ray.exceptions
import ray.remote_function
import ray.runtime_context  # noqa: F401
from ray import _raylet
from ray._private import executor, worker


def _limit(name: str, default: int) -> int:
    try:
        return int(os.environ.get(name, default))
    except ValueError:
        return default


class LogFile(io.FileIO):
    """A file of the session's logs. A full or failing disk costs lines, never the task that prints them; once there is room again, a line
    says how much is missing. Beyond RAY_ROTATION_MAX_BYTES it becomes FILE.1, and so on up to RAY_ROTATION_BACKUP_COUNT."""

    def __init__(self, descriptor: int):
        super().__init__(descriptor, "w", closefd=False)
        self._lost = 0
        self._size = os.fstat(descriptor).st_size
        self._max_size = _limit("RAY_ROTATION_MAX_BYTES", 512 << 20)
        self._backups = _limit("RAY_ROTATION_BACKUP_COUNT", 5)

    def write(self, data) -> int:
        try:
            if self._lost:
                super().write(f"[{self._lost} bytes of output are missing here: they could not be written]\n".encode())
                self._lost = 0
            written = super().write(data)
            self._size += written
            if self._size >= self._max_size > 0 and self._backups > 0 and data[-1:] == b"\n":
                self._size = 0
                self._rotate()
            return written
        except OSError:
            self._lost += len(data)
            return len(data)

    def size(self) -> int:
        return os.fstat(self.fileno()).st_size

    def open_line(self) -> bool:
        """Whether something else than this, a C library or a child, has left a line without its end."""
        status = os.fstat(self.fileno())
        if status.st_size == self._size or not stat.S_ISREG(status.st_mode):
            return False
        self._size = status.st_size
        with open(f"/proc/self/fd/{self.fileno()}", "rb") as file:
            file.seek(max(0, status.st_size - 1))
            return file.read(1) != b"\n"

    def _rotate(self):
        try:
            path = os.readlink(f"/proc/self/fd/{self.fileno()}")
            if not os.path.isfile(path):
                return
            for number in range(self._backups - 1, 0, -1):
                if os.path.exists(f"{path}.{number}"):
                    os.replace(f"{path}.{number}", f"{path}.{number + 1}")
            os.replace(path, path + ".1")
            fresh = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            os.dup2(fresh, self.fileno())       # what C code prints goes there, too
            os.close(fresh)
        except OSError:
            pass        # it goes on growing


NO_NAME = ":task_name:"


class MarkedStream(io.TextIOWrapper):
    """A worker's stdout or stderr. Before the first output of another function comes a marker line with its name: the
    node-manager's log monitor turns it into the prefix people see. Tasks that print nothing cost nothing."""

    def __init__(self, descriptor: int):
        super().__init__(io.BufferedWriter(LogFile(descriptor)), encoding="utf-8", errors="backslashreplace", line_buffering=True)
        self._marker = None         # the last in the file
        self._job = ""
        self._line_start = True
        self._unproven = -1         # the file's size after follow() put the marker there
        self._wrote: dict[str, bool] = {}   # marker -> whether its function was ever seen to write here

    def write(self, text):
        marker = _raylet.log_marker()
        if marker is not self._marker and marker is not None:
            self._mark(marker)
        if text:
            self._line_start = text[-1] == "\n"
        written = super().write(text)
        if not self._line_start:
            _flusher.wake()
        return written

    def _mark(self, marker):
        self._marker = marker
        self.flush()
        if not self._line_start or self.buffer.raw.open_line():       # what ran before left its line open
            super().write("\n")
        self._line_start = True
        if executor.current_job != self._job:
            self._job = executor.current_job
            super().write(f":job_id:{self._job}\n")
        super().write(marker + "\n")

    def follow(self, marker) -> tuple[bool, bool]:
        """Another function begins, which may write to the descriptor itself: not under the name of one that printed. A function that was seen to
        write nothing gets no marker in advance, only the other's name is taken away. Whether the file names a function now, and whether this one is silent."""
        if self._marker is None:
            return False, True          # nothing printed here
        if self._unproven >= 0:
            if len(self._wrote) >= 10000:
                self._wrote.clear()
            self._wrote[self._marker] = self._wrote.get(self._marker, False) or self.buffer.raw.size() != self._unproven
        self._unproven = -1
        silent = self._wrote.get(marker) is False
        wanted = NO_NAME if silent else marker
        if wanted != self._marker:
            self._mark(wanted)
            self._unproven = -1 if silent else self.buffer.raw.size()
        return not silent, silent


def function_changed(marker) -> tuple[bool, bool]:
    """Called by the binding when another function begins than the one that ran last, once something was printed, but not before functions known to be
    silent while the files name nobody. Whether they do now, and whether this function is silent."""
    try:
        said = [stream.follow(marker) for stream in (sys.__stdout__, sys.__stderr__) if isinstance(stream, MarkedStream)]
    except ValueError:      # closed by the program
        return False, True
    return any(named for named, _ in said), all(silent for _, silent in said)


class _Flusher:
    """Lines without an end leave Python's buffers a moment later. Its thread starts with the first of them."""

    def __init__(self):
        self._open = threading.Event()
        self._started = False

    def wake(self):
        if not self._open.is_set():
            self._open.set()
            if not self._started:
                self._started = True
                threading.Thread(target=self._run, name="ray_flush", daemon=True).start()

    def _run(self):
        while True:
            self._open.wait()
            time.sleep(0.05)
            self._open.clear()
            for stream in (sys.__stdout__, sys.__stderr__):
                try:
                    stream.flush()
                except ValueError:      # closed by the program
                    pass


_flusher = _Flusher()


def _on_interrupt(signum, frame):
    if _raylet.take_cancel():
        raise KeyboardInterrupt


def main(args: dict) -> int:
    """Runs a worker until its node-manager ends it; returns the exit code.

    args: worker_id (hex), node_manager_socket, session_dir, node_id; runtime_env (JSON), python_path, head_address and token for those that are
    to make an environment first.
    """
    sys.stdout = sys.__stdout__ = MarkedStream(1)
    sys.stderr = sys.__stderr__ = MarkedStream(2)
    signal.signal(signal.SIGINT, _on_interrupt)
    os.environ.setdefault("RAY_RAYLET_PID", str(executor.node_manager_pid))
    os.environ.setdefault("RAY_CLIENT_MODE", "0")
    os.environ.setdefault("PYTHONBREAKPOINT", "ray.util.rpdb.set_trace")
    if os.environ.get("RAY_worker_faulthandler", "1") != "0":
        import faulthandler
        faulthandler.enable(2)
    if args.get("runtime_env"):
        from ray._private.runtime_env.setup import enter
        enter(args)
        worker.global_worker.runtime_env = args["runtime_env"]
    worker.global_worker.start({
        "is_driver": False,
        "runtime_env": args.get("runtime_env"),
        "worker_id": bytes.fromhex(args["worker_id"]),
        "node_manager_socket": args["node_manager_socket"],
    })
    code = _raylet.run_worker()
    from ray._private.actor_end import run_hooks
    run_hooks()
    sys.stdout.flush()
    sys.stderr.flush()
    return code
