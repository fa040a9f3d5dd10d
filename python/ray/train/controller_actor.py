"""The controller of a run as an actor. Drivers import this module, which imports nothing heavy."""

from __future__ import annotations

import os
from typing import Any


class TrainController:
    """An asyncio actor without CPUs on the driver's node. It ends with the driver, and its workers
    end with it."""

    def __init__(self, spec: bytes):
        """spec: the pickled RunSpec.

        Raises CheckpointManagerInitializationError for a bad record of earlier checkpoints.
        """
        from ray.train.run import Run

        self._run = Run(spec)

    async def pid(self) -> int:
        """Returns the process id of the controller."""
        return os.getpid()

    async def run(self) -> dict:
        """Runs to the end; returns the pieces of what fit() returns or raises."""
        return await self._run.run()

    async def abort(self) -> None:
        """Ends the run; returns when nothing of it is left."""
        await self._run.abort()

    async def take_report(self, attempt: int, rank: int, report: Any) -> None:
        """A worker's next report. Returns when the worker may send another one."""
        await self._run.take_report(attempt, rank, report)

    async def reported_checkpoints(
        self, attempt: int, made: int, mode: str, timeout_s: float | None
    ) -> list:
        """Returns all checkpoints, once the first `made` reports of this attempt are registered."""
        return await self._run.reported_checkpoints(attempt, made, mode, timeout_s)

    async def ranks_missing(self, attempt: int, waiting: dict | None) -> None:
        """Takes note that ranks of the attempt have waited long for others (state.py). None: they
        wait no longer."""
        self._run.ranks_missing(attempt, waiting)

    async def sees_storage(self) -> bool:
        """Returns whether the folder of the run is there as the driver made it."""
        return await self._run.sees_storage()

    async def state(self) -> dict:
        """Returns the record of the run as plain values (state.py)."""
        return self._run.state()
