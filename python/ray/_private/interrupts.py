"""Ctrl-C while a cluster is being started or left: it waits until that is done, so that no process is left and no half of a connection stays."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def deferred_interrupts() -> Iterator[None]:
    """SIGINT is handled at the end; a second one at once, as nobody waits for ever. In threads other than the main one, where none arrives, nothing is done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):  # SIG_IGN, SIG_DFL, or one that is not Python's
        yield
        return
    came = []

    def defer(signum, frame):
        if came:
            handler(signum, frame)
        came.append((signum, frame))

    signal.signal(signal.SIGINT, defer)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(*came[0])
