"""DrainWatch tells the controller which nodes of the cluster are being drained."""

from __future__ import annotations

import asyncio
import threading
from typing import Callable

from ray import _raylet


class DrainWatch:
    """Hears of drains in a thread of its own, which ends with the process.

    nodes: node id (hex) -> when it ends, in milliseconds since the epoch; 0 if nobody said when.
    `changed` is called in the event loop whenever that changes.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, changed: Callable[[], None]):
        self.nodes: dict[str, int] = {}
        self._loop = loop
        self._changed = changed
        threading.Thread(target=self._run, name="ray-train-drains", daemon=True).start()

    def _run(self) -> None:
        known: dict[str, int] = {}
        while True:
            drains = _raylet.wait_for_drains(known, None)
            if drains is None:
                # This process is leaving the cluster.
                return
            known = {node: deadline_ms for node, (_, _, deadline_ms) in drains.items()}
            self._loop.call_soon_threadsafe(self._take, known)

    def _take(self, nodes: dict[str, int]) -> None:
        self.nodes = nodes
        self._changed()
