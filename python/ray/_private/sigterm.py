"""A handler for SIGTERM that forked children do not inherit.

Children (of a multiprocessing.Pool, say) end by SIGTERM as if there were no handler: they must not
unwind their parent's program, and a Python handler would lose a signal that arrives while the
interpreter is being set up in the child.
"""

from __future__ import annotations

import os
import signal

_handler = None
_held_back = False


def install(handler):
    """Installs the handler. Must be called in the main thread."""
    global _handler
    if _handler is None:
        os.register_at_fork(
            before=_before_fork,
            after_in_parent=_after_fork_in_parent,
            after_in_child=_after_fork_in_child,
        )
    _handler = handler
    signal.signal(signal.SIGTERM, handler)


def _before_fork():
    global _held_back
    _held_back = signal.getsignal(
        signal.SIGTERM
    ) is _handler and signal.SIGTERM not in signal.pthread_sigmask(
        signal.SIG_BLOCK, (signal.SIGTERM,)
    )


def _after_fork_in_parent():
    global _held_back
    if _held_back:
        _held_back = False
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))


def _after_fork_in_child():
    if _held_back:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _after_fork_in_parent()
