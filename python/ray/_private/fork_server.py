"""The parent of a node's Python workers: imports once what all of them need, then forks on request.

The node-manager starts it as ``python -c "...; main()" FD`` with one end of a socket pair. Requests
and answers are JSON lines: ``{"op": "fork", "worker_id", "stdout", "stderr", "args", "env"}`` is
answered by ``{"forked": worker_id, "pid", "start"}`` (start time of the process, field 22 of
/proc/PID/stat) or ``{"failed": worker_id, "error"}``; ``{"exited": pid, "status"}`` follows when
the worker has ended. ``{"ready": pid}`` says that the imports are done. With an argument
``preload=[names]`` (JSON) it first imports the modules which a runtime environment names, each
announced by ``{"importing": name}`` (preload.py).

With the argument ``interpreter`` the first line that comes is a JSON object with the fields "pip"
and "py_executable" of a runtime environment. The server makes that interpreter, announced by
``{"making": true}``, and becomes it by an exec, so that its workers need none. What cannot be made
is left to the workers, each of which then reports why.

The server has a single thread, and nothing imported here may start another: a fork copies only the
calling thread. The first task of a node waits for the imports, so there are few, and the garbage
collector is off meanwhile. When the socket closes, the server kills its children and ends; should
it die first, the kernel kills them (parent-death signal).

Each worker leads a process group, and the processes it started end with it (unless the program has
"keep-children" as an argument): the group is killed while the worker is a zombie, as the id of a
zombie is not reused. Processes that made a group or session of their own go on.
"""

import gc
import json
import os
import select
import signal
import sys
import traceback

from ray import _raylet
from ray._private import preload, worker_main

_MAX_LINE = 1 << 20


def _start_time(pid):
    """Start time of a process in clock ticks since boot; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return 0


def _redirect(path, descriptor):
    path = path.replace("%p", str(os.getpid()))
    try:
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    except OSError:
        # A full or read-only session directory costs the log, not the worker.
        target = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(target, descriptor)
    os.close(target)


def _set_name(name):
    """Sets the name of this process's main thread, which `ps` and `top` show."""
    try:
        with open("/proc/self/comm", "wb") as comm:
            comm.write(name)
    except OSError:
        pass


class ForkServer:
    def __init__(self, descriptor, end_groups=True):
        self._socket = descriptor
        os.set_inheritable(descriptor, False)
        self._pid = os.getpid()
        self._children = set()
        self._end_groups = end_groups
        # If this interpreter is that of an environment: the interpreter on which the environment is
        # based, and locks that keep the environment while this process lives.
        self.served, self._locks = (*_names_in("served="), None, ())[:2]
        self._partial = b""
        # The handler of SIGCHLD does nothing; the signal makes this pipe readable.
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def become_interpreter(self):
        """Replaces this program by the same one in the interpreter that the next line asks for.

        Returns when that fails.
        """
        fields = json.loads(self._read_line())
        self._send({"making": True})
        from ray._private.runtime_env import setup

        try:
            with setup.time_limit(fields):
                command, base, locks = setup.interpreter(fields, fields["session_dir"])
            for descriptor in (self._socket, *locks):
                os.set_inheritable(descriptor, True)
            arguments = [part for part in sys.argv[1:] if part != "interpreter"]
            served = "served=" + json.dumps([base, locks])
            os.execvp(
                command[0], [*command, "-c", _program(fields["python_path"]), *arguments, served]
            )
        except Exception as error:
            os.set_inheritable(self._socket, False)
            print(f"fork server: {error}: left to the workers", file=sys.stderr, flush=True)

    def _read_line(self):
        line = b""
        while not line.endswith(b"\n"):
            # Reading more than a byte would take requests away from serve().
            byte = os.read(self._socket, 1)
            if not byte:
                os._exit(1)  # The node-manager is gone.
            line += byte
        return line

    def preload(self, names):
        """Imports modules for the workers; may replace this program by a new one."""
        # The modules that were left out by this program's predecessors.
        left_out = _names_in("without=")
        harmful = preload.load(
            [name for name in names if name not in left_out],
            lambda name: self._send({"importing": name}),
        )
        if harmful is not None:
            os.set_inheritable(self._socket, True)
            command = [part for part in sys.orig_argv if not part.startswith("without=")]
            os.execvp(command[0], [*command, "without=" + json.dumps([*left_out, harmful])])
        # Imports leave cycles behind, which the children need not share.
        gc.collect()

    def close_locks_on_exec(self):
        for descriptor in self._locks:
            os.set_inheritable(descriptor, False)

    def serve(self):
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        _set_name(b"ray::fork_srv")
        # No parent-death signal: the closed socket shows the node-manager's end, and the children
        # must then be killed.
        _raylet.set_parent_death_signal(0)
        # The children share the objects that exist now, as long as their collector does not look at
        # them.
        gc.freeze()
        gc.enable()
        self._send({"ready": os.getpid()})
        poller = select.poll()
        poller.register(self._socket, select.POLLIN)
        poller.register(self._wake_read, select.POLLIN)
        while True:
            for descriptor, _ in poller.poll():
                if descriptor == self._wake_read:
                    try:
                        os.read(self._wake_read, 4096)
                    except BlockingIOError:
                        pass
                    self._reap()
                elif not self._read():
                    self._end_children()
                    return

    def _read(self):
        """Handles what the node-manager sent; returns False when the node-manager is gone."""
        try:
            data = os.read(self._socket, 65536)
        except ConnectionError:
            return False
        if not data or len(self._partial) > _MAX_LINE:
            return False
        lines = (self._partial + data).split(b"\n")
        self._partial = lines.pop()
        for line in lines:
            request = json.loads(line)
            if request.get("op") == "fork":
                self._fork(request)
        return True

    def _send(self, message):
        line = json.dumps(message).encode() + b"\n"
        try:
            while line:
                line = line[os.write(self._socket, line) :]
        except OSError:
            pass  # The next read sees that the socket is closed.

    def _fork(self, request):
        try:
            pid = os.fork()
        except OSError as error:
            self._send({"failed": request["worker_id"], "error": f"fork: {error.strerror}"})
            return
        if pid == 0:
            # This call never returns.
            self._run_child(request)
        self._children.add(pid)
        self._send({"forked": request["worker_id"], "pid": pid, "start": _start_time(pid)})

    def _run_child(self, request):
        code = 1
        try:
            self._enter_child(request)
            if self.served:
                request["args"]["served"] = self.served
            if os.getppid() == self._pid:
                code = worker_main.main(request["args"])
                code = code if isinstance(code, int) else 0
        except SystemExit as exit_request:
            code = (
                exit_request.code
                if isinstance(exit_request.code, int)
                else int(exit_request.code is not None)
            )
        except BaseException:
            traceback.print_exc()
        finally:
            try:
                sys.stdout.flush()
                sys.stderr.flush()
            except Exception:
                pass
            # Unlike sys.exit(), this leaves out the server's clean-up, which the worker must not
            # run.
            os._exit(code & 0xFF)

    def _enter_child(self, request):
        _raylet.set_parent_death_signal(signal.SIGKILL)
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.close(self._socket)
        os.close(self._wake_read)
        os.close(self._wake_write)
        _redirect(request["stdout"], 1)
        _redirect(request["stderr"], 2)
        os.environ.update(request.get("env") or {})
        random = sys.modules.get("random")
        if random is not None:
            random.seed()
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            numpy.random.seed()
        # The generator of torch takes its seed when torch is imported.
        generator = getattr(sys.modules.get("torch"), "default_generator", None)
        if generator is not None:
            generator.seed()
        _set_name(b"ray::IDLE")

    def _reap(self):
        while self._children:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None:
                return
            self._send({"exited": ended.si_pid, "status": self._collect(ended.si_pid)})

    def _collect(self, pid):
        """Reaps a child that has ended and returns its wait status."""
        if self._end_groups:
            try:
                os.killpg(pid, signal.SIGKILL)
            except OSError:
                pass  # The child ended before it led a group.
        self._children.discard(pid)
        return os.waitpid(pid, 0)[1]

    def _end_children(self):
        for pid in self._children:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for pid in list(self._children):
            try:
                os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
                self._collect(pid)
            except ChildProcessError:
                pass


def _program(python_path):
    """The program of a server whose package may lie among the packages of another interpreter. The
    interpreter's own packages come first (runtime_env/setup.py)."""
    return (
        f"import gc, sys; gc.disable(); p = {python_path!r}; sys.path.insert(0, p); from "
        "ray._private.fork_server import main; "
        "sys.path.remove(p); p in sys.path or sys.path.append(p); main()"
    )


def _names_in(option):
    for argument in sys.argv[2:]:
        if argument.startswith(option):
            return json.loads(argument[len(option) :])
    return []


def main():
    server = ForkServer(int(sys.argv[1]), "keep-children" not in sys.argv[2:])
    is_workers_task = "interpreter" in sys.argv[2:]
    if is_workers_task:
        server.become_interpreter()
    modules = _names_in("preload=")
    # Workers that become another interpreter would lose the modules.
    if modules and not is_workers_task:
        server.preload(modules)
    server.close_locks_on_exec()
    server.serve()
