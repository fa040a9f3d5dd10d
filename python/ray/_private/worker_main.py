"""The main program of a worker, called in a child of the fork server.

The server imports this module before it forks, so all workers of a node share the imports (copy on
write). None of them may start a thread.
"""

from __future__ import annotations

import faulthandler
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
from ray._private import actor_end, ending, executor, service_thread
from ray._private.session import global_worker


def _limit(name: str, default: int) -> int:
    try:
        return int(os.environ.get(name, default))
    except ValueError:
        return default


class LogFile(io.FileIO):
    """A log file of the session.

    A full or failing disk costs lines, never the task that prints them; once there is room again,
    a line says how many bytes are missing. When the file exceeds RAY_ROTATION_MAX_BYTES it becomes
    FILE.1, and so on up to RAY_ROTATION_BACKUP_COUNT.
    """

    def __init__(self, descriptor: int):
        super().__init__(descriptor, "w", closefd=False)
        # Set when the file was rotated and has no markers yet.
        self.is_new = False
        self._lost = 0
        self._size = os.fstat(descriptor).st_size
        self._max_size = _limit("RAY_ROTATION_MAX_BYTES", 512 << 20)
        self._backups = _limit("RAY_ROTATION_BACKUP_COUNT", 5)

    def write(self, data) -> int:
        try:
            if self._lost:
                super().write(
                    f"[{self._lost} bytes of output are missing here: they could not be "
                    "written]\n".encode()
                )
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

    def take_growth(self) -> bool:
        """Returns whether another writer (a C library, a child) has written since the last call."""
        before, self._size = self._size, self.size()
        return self._size != before

    def open_line(self) -> bool:
        """Returns whether another writer has left its last line unfinished."""
        if not self.take_growth() or not stat.S_ISREG(os.fstat(self.fileno()).st_mode):
            return False
        with open(f"/proc/self/fd/{self.fileno()}", "rb") as file:
            file.seek(max(0, self._size - 1))
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
            # This also leads the output of C code into the new file.
            os.dup2(fresh, self.fileno())
            os.close(fresh)
            self.is_new = True
        except OSError:
            # Without a new file the old one goes on growing.
            pass


NO_NAME_MARKER = ":task_name:"
NO_TASK_MARKER = ":task_id:"
_MOST_KNOWN = 10_000


class MarkedStream(io.TextIOWrapper):
    """A worker's stdout or stderr with marker lines.

    A marker precedes output of another function, with its name, and output of another task, with
    its id. The node-manager's log monitor makes the visible prefix of the name; the id serves to
    find the lines of one task.

    Markers are written together with output, so that tasks that write nothing cost nothing. Output
    that goes straight to the descriptor (by C code, by children) cannot be marked that way. A
    function therefore gets its markers in advance in its first run, as long as it wrote in the run
    before, and, if it ever wrote, whenever it follows another function.
    """

    def __init__(self, descriptor: int):
        super().__init__(
            io.BufferedWriter(LogFile(descriptor)),
            encoding="utf-8",
            errors="backslashreplace",
            line_buffering=True,
        )
        # The last name in the file.
        self._name = None
        # The last task in the file.
        self._task = NO_TASK_MARKER
        self._job = ""
        self._line_start = True
        self._lock = threading.RLock()
        # The tasks whose unfinished line was ended by the output of another task.
        self._tasks_with_cut_line: set[str] = set()
        # The size of the file after markers were written in advance; -1 when none were.
        self._ahead = -1
        # Whether markers were written together with output.
        self._late = False
        # Maps a function to whether it wrote in its last run.
        self._wrote_in_last_run: dict[int, bool] = {}
        # The functions that have ever written.
        self._ever_wrote: set[int] = set()
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self):
        self._lock = threading.RLock()

    def write(self, text):
        with self._lock:
            name = _raylet.log_marker()
            if name is not None:
                task = _raylet.log_task()
                if task in self._tasks_with_cut_line:
                    self._tasks_with_cut_line.discard(task)
                    if text == "\n":
                        return 1
                if self._mark(name, task):
                    self._late = True
            if text:
                self._line_start = text[-1] == "\n"
            written = super().write(text)
            if not self._line_start:
                _raylet.note_open_line()
                _flusher.wake()
            return written

    def _mark(self, name, task) -> bool:
        """Marks the output that follows as output of this task; returns False if it already was
        marked so."""
        file = self.buffer.raw
        if name is self._name and task == self._task and not file.is_new:
            return False
        self.flush()
        # The new file must be readable without the one before it.
        if file.is_new:
            file.is_new = False
            self._name, self._job = None, ""
        marks = ""
        # The task that ran before left its line open.
        if not self._line_start or file.open_line():
            marks = "\n"
            if not self._line_start and len(self._tasks_with_cut_line) < _MOST_KNOWN:
                self._tasks_with_cut_line.add(self._task)
        if executor.current_job != self._job:
            self._job = executor.current_job
            marks += f":job_id:{self._job}\n"
        if name is not self._name:
            marks += name + "\n"
        # A name without a task ends the output of the task before.
        if task != NO_TASK_MARKER or name is self._name:
            marks += task + "\n"
        self._name, self._task, self._line_start = name, task, True
        super().write(marks)
        return True

    def begin(self, name, task, function: int, before: int) -> tuple[bool, bool, bool, bool]:
        """Notes that a task of `function` begins, after one of `before`.

        Returns whether the file now names a function, whether it names a task, whether `function`
        wrote in its last run (or has not run), and whether it ever wrote.
        """
        with self._lock:
            self.flush()
            file = self.buffer.raw
            if self._late or self._ahead >= 0:
                self._learn(before, self._late or file.size() != self._ahead)
            self._late, self._ahead = False, -1
            may_write = self._wrote_in_last_run.get(function, True)
            has_written = function in self._ever_wrote
            if may_write or (has_written and name is not self._name):
                self._mark(name, task)
                self._ahead = file.size()
            elif self._task != NO_TASK_MARKER or self._name not in (None, NO_NAME_MARKER, name):
                self._mark(name if name is self._name else NO_NAME_MARKER, NO_TASK_MARKER)
            names_function = self._name not in (None, NO_NAME_MARKER)
            names_task = self._task != NO_TASK_MARKER
            return names_function, names_task, may_write, has_written

    def _learn(self, function: int, wrote: bool):
        if len(self._wrote_in_last_run) >= _MOST_KNOWN:
            self._wrote_in_last_run.clear()
            self._ever_wrote.clear()
        self._wrote_in_last_run[function] = wrote
        if wrote:
            self._ever_wrote.add(function)

    def wrote_unmarked(self, function: int) -> bool:
        """Returns whether something was written to the descriptor since the last marker.

        If so, the next run of this function is marked in advance.
        """
        with self._lock:
            self.flush()
            if not self.buffer.raw.take_growth():
                return False
            self._learn(function, True)
            return True


def _streams() -> list[MarkedStream]:
    return [
        stream for stream in (sys.__stdout__, sys.__stderr__) if isinstance(stream, MarkedStream)
    ]


def task_begins(name, task, function: int, before: int) -> tuple[bool, ...]:
    """Calls MarkedStream.begin() for both files; each answer is true if it is true for one of them.

    The binding calls this before tasks that may write, and after those that did.
    """
    try:
        said = [stream.begin(name, task, function, before) for stream in _streams()]
    except ValueError:  # The program closed the stream.
        said = []
    return tuple(map(any, zip(*said))) or (False, False, False, False)


def wrote_unmarked(function: int) -> bool:
    """Calls MarkedStream.wrote_unmarked() for both files.

    The binding calls this after a task that was not marked and ran for some time.
    """
    try:
        return any([stream.wrote_unmarked(function) for stream in _streams()])
    except ValueError:
        return False


def flush_streams():
    """Writes what was printed without a newline. The binding calls this at the ends of tasks."""
    for stream in (sys.__stdout__, sys.__stderr__):
        try:
            stream.flush()
        except ValueError:  # The program closed the stream.
            pass


class _Flusher:
    """Flushes lines without an end a moment after they were written.

    Its thread starts with the first such line.
    """

    def __init__(self):
        self._open = threading.Event()
        self._started = False

    def wake(self):
        if not self._open.is_set():
            self._open.set()
            if not self._started:
                self._started = True
                service_thread.start(self._run, "ray-flush")

    def _run(self):
        while True:
            self._open.wait()
            time.sleep(0.05)
            self._open.clear()
            flush_streams()


_flusher = _Flusher()


# A cancellation waits for an import under way, because a module that is half imported would fail
# every later task of this process that imports it; but no longer than this, in seconds.
_IMPORT_PATIENCE_S = 10.0
# The task whose cancellation waits, and since when.
_waiting: tuple[bytes | None, float] = (None, 0.0)


def _is_importing(frame) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _on_interrupt(signum, frame):
    global _waiting
    task = _raylet.take_cancel()
    if task is None:
        return
    now = time.monotonic()
    if _is_importing(frame):
        if _waiting[0] != task:
            _waiting = task, now
        if now - _waiting[1] < _IMPORT_PATIENCE_S:
            _raylet.postpone_cancel()
            return
    raise KeyboardInterrupt


def main(args: dict) -> int:
    """Runs a worker until its node-manager ends it; returns the exit code.

    args: worker_id (hex), node_manager_socket, session_dir, node_id; a worker that makes a runtime
    environment also gets runtime_env (JSON), python_path, head_address and token.
    """
    ending.install()
    actor_end.note_exit_functions()
    sys.stdout = sys.__stdout__ = MarkedStream(1)
    sys.stderr = sys.__stderr__ = MarkedStream(2)
    signal.signal(signal.SIGINT, _on_interrupt)
    os.environ.setdefault("RAY_RAYLET_PID", str(executor.node_manager_pid))
    os.environ.setdefault("RAY_CLIENT_MODE", "0")
    os.environ.setdefault("PYTHONBREAKPOINT", "ray.util.rpdb.set_trace")
    if os.environ.get("RAY_worker_faulthandler", "1") != "0":
        faulthandler.enable(2)
    if args.get("runtime_env"):
        from ray._private.runtime_env.setup import enter

        enter(args)
        global_worker.runtime_env = args["runtime_env"]
    global_worker.start(
        {
            "is_driver": False,
            "runtime_env": args.get("runtime_env"),
            "worker_id": bytes.fromhex(args["worker_id"]),
            "node_manager_socket": args["node_manager_socket"],
        }
    )
    ending.install_sigterm()
    code = _raylet.run_worker()
    if code < 0 or _raylet.leaves_by_itself():
        actor_end.run_hooks()
    if code < 0:
        ending.die_by_signal(-code)
    sys.stdout.flush()
    sys.stderr.flush()
    return code
