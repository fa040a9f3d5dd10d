"""Defers Ctrl-C while a cluster is being started or left.

Otherwise processes would be left behind, or half of a connection.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Delivers a SIGINT at the end of the block, but a second one at once.

    Does nothing in threads other than the main one, where no signal is handled.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    # The handler is SIG_IGN or SIG_DFL, or Python did not install it.
    if not callable(handler):
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
