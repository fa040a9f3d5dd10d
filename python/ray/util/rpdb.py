"""Breakpoints in tasks and actors.

`breakpoint()` and ray.util.pdb.set_trace() wait there for a person with a terminal. RAY_DEBUG in
the worker's environment chooses the debugger: `1` (default) is debugpy where it is installed,
`legacy` is pdb over TCP, which needs only `nc HOST PORT`. With RAY_DEBUG_POST_MORTEM=1 a task that
fails waits where it failed.

The port is on the loopback interface, or with RAY_DEBUGGER_EXTERNAL=1 on the node's address.
Whoever can reach the port can run code as this process.
"""

from __future__ import annotations

import os
import pdb
import socket
import sys
from types import FrameType, TracebackType

from ray._private.breakpoints import Waiting, host
from ray._private.session import WORKER_MODE, global_worker
from ray.util import ray_debugpy


def set_trace(breakpoint_uuid: str | None = None) -> None:
    """Stops the caller at its next line until a debugger lets it go on.

    On a driver it starts pdb on the terminal. `breakpoint_uuid` is the name of this stop in the
    list of waiting ones.
    """
    frame = sys._getframe().f_back
    if not _in_worker():
        pdb.Pdb().set_trace(frame)
        return
    if os.environ.get("RAY_DEBUG", "1") != "legacy":
        if ray_debugpy.available():
            ray_debugpy.stop(breakpoint_uuid)
            return
    _TcpPdb(_place(frame), breakpoint_uuid).set_trace(frame)


def post_mortem(traceback: TracebackType | None) -> None:
    """Waits for a debugger to inspect the end of a traceback."""
    last = traceback
    while last is not None and last.tb_next:
        last = last.tb_next
    if last is not None:
        debugger = _TcpPdb(f"{last.tb_frame.f_code.co_filename}:{last.tb_lineno}", None)
        debugger.reset()
        debugger.interaction(None, traceback)
        debugger.close()


def _in_worker() -> bool:
    return global_worker.mode == WORKER_MODE


def _place(frame: FrameType | None) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "?"


class _TcpPdb(pdb.Pdb):
    """A pdb whose terminal is the first connection to a port, for which the constructor waits."""

    def __init__(self, place: str, name: str | None):
        with socket.create_server((host(), 0)) as server:
            address = "{}:{}".format(*server.getsockname()[:2])
            waiting = Waiting(place, address, "pdb", name)
            try:
                print(
                    f"pdb waits at {place}. Connect with: nc {address.replace(':', ' ')}",
                    file=sys.stderr,
                    flush=True,
                )
                connection, _ = server.accept()
            finally:
                waiting.remove()
        self._file = connection.makefile("rw", newline="\n")
        # The file keeps the socket open.
        connection.close()
        super().__init__(stdin=self._file, stdout=self._file, nosigint=True, readrc=False)
        self.use_rawinput = False
        self.prompt = "(Pdb) "

    def close(self) -> None:
        try:
            self._file.close()
        except OSError:
            # The peer has gone.
            pass

    def do_continue(self, arg):
        result = super().do_continue(arg)
        if not self.breaks:
            self.close()
        return result

    do_c = do_cont = do_continue

    def do_quit(self, arg):
        """Makes the task fail with bdb.BdbQuit; after a failure nothing changes."""
        result = super().do_quit(arg)
        self.close()
        return result

    do_q = do_exit = do_quit

    def do_EOF(self, arg):
        """Lets the program go on, because the connection has ended."""
        self.clear_all_breaks()
        return self.do_continue(arg)
