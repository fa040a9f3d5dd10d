"""How a worker ends.

A worker that ends itself, by os._exit() or a signal, first sends the results of its finished
tasks. One that gets a SIGTERM, or whose task calls sys.exit(), lets user code clean up.

Results leave in batches, a fraction of a millisecond after they were returned. A process that ends
at once would lose the last batch, and its tasks would run again or fail. Faults such as SIGSEGV
are handled in C++ (worker/service/fatal_signals.h).
"""

from __future__ import annotations

import functools
import os
import signal
import sys

from ray import _raylet
from ray._private import sigterm
from ray._private.actor_end import run_exit_functions


def _exit(original):
    @functools.wraps(original)
    def exit_after_flush(status):
        _raylet.flush_before_exit()
        original(status)

    return exit_after_flush


def _signals_us(pid) -> bool:
    """Whether a signal to `pid`, with the meaning that os.kill() gives it, reaches this process."""
    return isinstance(pid, int) and (
        pid in (0, -1, os.getpid()) or (pid < -1 and -pid == os.getpgrp())
    )


def _kill(original):
    @functools.wraps(original)
    def kill_after_flush(pid, signum, /):
        if signum != 0 and _signals_us(pid):
            _raylet.flush_before_exit()
        return original(pid, signum)

    return kill_after_flush


def _killpg(original):
    @functools.wraps(original)
    def killpg_after_flush(pgid, signum, /):
        if signum != 0 and isinstance(pgid, int) and pgid in (0, os.getpgrp()):
            _raylet.flush_before_exit()
        return original(pgid, signum)

    return killpg_after_flush


def _raise(original):
    @functools.wraps(original)
    def raise_after_flush(signum, /):
        _raylet.flush_before_exit()
        return original(signum)

    return raise_after_flush


def install():
    """Wraps the functions that end a process, so that results are sent first.

    Must run before any import of user code: a module that has imported one of these functions by
    name keeps the original.
    """
    os._exit = _exit(os._exit)
    os.kill = _kill(os.kill)
    os.killpg = _killpg(os.killpg)
    signal.raise_signal = _raise(signal.raise_signal)


class Terminated(SystemExit):
    """The exception that SIGTERM raises in the running task."""


_terminated = False


def _on_sigterm(signum, frame):
    """Raises Terminated once, as the node-manager may repeat the signal while the task cleans up.

    Where no task runs in this thread, run_worker() returns instead.
    """
    global _terminated
    if not _terminated and _raylet.in_task():
        _terminated = True
        raise Terminated(1)


def install_sigterm():
    """Installs the SIGTERM handler. Called when this process is connected."""
    sigterm.install(_on_sigterm)
    _raylet.end_on_sigterm()


def end_process(error: SystemExit, code: int):
    """Ends the process after a task's SystemExit as the interpreter would: exit functions first."""
    run_exit_functions()
    if isinstance(error, Terminated):
        die_by_signal(signal.SIGTERM)
    _flush()
    os._exit(code)


def die_by_signal(number: int):
    """Ends the process by the signal, so that its parent sees what ended it."""
    _flush()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    # This is reached only when the signal is blocked.
    os._exit(128 + number)


def _flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
