"""Ctrl-C while fit() waits in the main thread of a driver."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

import ray
from ray._private.session import SCRIPT_MODE, global_worker

# Seconds that the controller gets to end its run after the first Ctrl-C.
_ABORT_S = 30.0
_EXIT_CODE = 1
# At this interrupt the process ends at once.
_IMPATIENT = 3


class _Interrupts:
    """The handler of SIGINT. It stays in place when fit() has returned."""

    def __init__(self):
        self.controller: Any = None
        self._count = 0
        self._before: Any = None

    def install(self) -> None:
        """Makes this the handler of SIGINT; the main thread only."""
        current = signal.getsignal(signal.SIGINT)
        if current != self.handle:
            self._before = current
            signal.signal(signal.SIGINT, self.handle)

    def handle(self, signum, frame) -> None:
        self._count += 1
        controller = self.controller
        if controller is None:
            # No run is under way, so the handler from before fit() decides.
            if callable(self._before):
                self._before(signum, frame)
                return
            raise KeyboardInterrupt
        if self._count >= _IMPATIENT:
            os._exit(_EXIT_CODE)
        if self._count > 1:
            print("Received SIGINT again; a third one ends this program at once.", file=sys.stderr)
            return
        print(
            "Received SIGINT. The training run is being aborted; its checkpoints stay. Press "
            "Ctrl-C twice more to end this program at once.",
            file=sys.stderr,
            flush=True,
        )
        try:
            ray.get(controller.abort.remote(), timeout=_ABORT_S)
        except Exception as error:
            print(f"The run could not be aborted in order: {error}", file=sys.stderr)
        sys.exit(_EXIT_CODE)

    def begin(self, controller: Any) -> None:
        self.controller, self._count = controller, 0

    def end(self) -> None:
        self.controller, self._count = None, 0


_interrupts = _Interrupts()


def begin(controller: Any) -> bool:
    """Makes Ctrl-C abort this controller's run from now on. Returns False outside of a driver's
    main thread.

    In workers, SIGINT is used to cancel calls.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or global_worker.mode != SCRIPT_MODE:
        return False
    _interrupts.install()
    _interrupts.begin(controller)
    return True


def end() -> None:
    """Notes that the run is over; called where begin() returned True."""
    _interrupts.end()
