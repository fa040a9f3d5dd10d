"""A worker that ends itself, by os._exit() or a signal, sends the results of its finished tasks before.

Results leave together, a fraction of a millisecond after they were given. A process that ends at once would take the last ones along, and their tasks would
run again, or fail. What a fault ends is seen to in C++ (worker/service/fatal_signals.h).
"""
from __future__ import annotations

import functools
import os
import signal

from ray import _raylet


def _exit(original):
    @functools.wraps(original)
    def exit_after_flush(status):
        _raylet.flush_before_exit()
        original(status)
    return exit_after_flush


def _signals_us(pid) -> bool:
    """Whether a signal to `pid`, as os.kill() takes it, reaches this process."""
    return isinstance(pid, int) and (pid in (0, -1, os.getpid()) or (pid < -1 and -pid == os.getpgrp()))


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
    """Before anything of the program is imported: who has one of these functions by name keeps it."""
    os._exit = _exit(os._exit)
    os.kill = _kill(os.kill)
    os.killpg = _killpg(os.killpg)
    signal.raise_signal = _raise(signal.raise_signal)
