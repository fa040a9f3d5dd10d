"""Makes complete reports the run's: in the record of checkpoints, and known to callbacks."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from ray import cloudpickle
from ray.train.errors import described
from ray.train.reported import TrainingReport
from ray.train.spec import RunContext, RunSpec

logger = logging.getLogger("ray.train")

# Characters of a report's metrics on the terminal and in the logs.
_MOST_CHARACTERS = 2000


class Registrar:
    """Registers one report after the other. All methods run in the controller's event loop.

    Storage and callbacks may block and have a thread meanwhile. What fails there is told to
    `broke`, once, and nothing is registered any more.
    """

    def __init__(self, spec: RunSpec, manager: Any, broke: Any):
        self.manager = manager
        self.count = manager.report_index  # Reports of the run that are registered.
        self._spec = spec
        self._broke = broke
        self._context: RunContext | None = None
        self._last: asyncio.Task | None = None
        self._changed = asyncio.Event()
        self._failed = False

    def register(self, reports: tuple[TrainingReport | None, ...]) -> None:
        """Registers the reports that all ranks made together; by rank (see events.Register)."""
        has_checkpoint = any(one is not None and one.checkpoint_dir_name for one in reports)
        if self._last is None and not has_checkpoint and not self._spec.callbacks:
            # The common case costs no thread and no task.
            self.manager.advance(self.count)
            self._done()
            return
        self._last = asyncio.get_running_loop().create_task(self._after(self._last, reports))

    async def settled(self) -> None:
        """Waits until everything that register() got is registered."""
        while self._last is not None:
            await asyncio.shield(self._last)

    async def wait_for(self, count: int, timeout_s: float | None) -> None:
        """Waits until so many reports of the run are registered, at most so many seconds."""
        loop = asyncio.get_running_loop()
        end = None if timeout_s is None else loop.time() + timeout_s
        while self.count < count:
            left = None if end is None else end - loop.time()
            if left is not None and left <= 0:
                return
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except asyncio.TimeoutError:
                return

    async def tell_failures(self, failures: dict[int, BaseException]) -> None:
        """Calls after_exception of all callbacks, after the reports before it."""
        await self.settled()
        loop = asyncio.get_running_loop()
        try:
            for callback in self._spec.callbacks:
                await loop.run_in_executor(
                    None, _call, callback.after_exception, self._run_context(), failures
                )
        except Exception as error:
            self._fail(error)

    async def _after(self, before: asyncio.Task | None, reports) -> None:
        if before is not None:
            await before
        task = asyncio.current_task()
        try:
            if not self._failed:
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(None, self._work, self.count, reports)
                self._done()
        except Exception as error:
            self._fail(error)
        finally:
            if self._last is task:
                self._last = None

    def _work(self, index: int, reports: tuple[TrainingReport | None, ...]) -> None:
        """In a thread: the snapshot, the directories beyond num_to_keep, the callbacks."""
        metrics = reports[0].metrics
        names = [one.checkpoint_dir_name for one in reports if one and one.checkpoint_dir_name]
        checkpoint = None
        if names:
            has_late = any(one is None for one in reports)
            deleted = self.manager.register(names[0], metrics, index, has_late)
            checkpoint = self._spec.storage.checkpoint_at(names[0])
            shown = _shown(metrics)
            logger.info("Report %d: checkpoint %s, metrics %s", index + 1, checkpoint.path, shown)
            for name in deleted or ():
                logger.debug("Deleted checkpoint %s (num_to_keep).", name)
        else:
            self.manager.advance(index)
        for callback in self._spec.callbacks:
            metrics = [one.metrics for one in reports if one is not None]
            _call(callback.after_report, self._run_context(), metrics, checkpoint)

    def _done(self) -> None:
        self.count += 1
        self._changed.set()
        self._changed = asyncio.Event()

    def _fail(self, error: BaseException) -> None:
        if not self._failed:
            self._failed = True
            logger.error("A report or a failure could not be dealt with: %s", error, exc_info=error)
            self._broke(error)

    def _run_context(self) -> RunContext:
        if self._context is None:
            spec = self._spec
            config = cloudpickle.loads(spec.config_blob) if spec.config_blob else None
            self._context = RunContext(spec.run_config, spec.scaling_config, config)
        return self._context


def _call(method: Any, *arguments: Any) -> None:
    """Calls a callback. What ends a program, such as sys.exit(), would end the event loop and
    nobody would hear of it: here it is an error like others."""
    try:
        method(*arguments)
    except Exception:
        raise
    except BaseException as error:
        raise RuntimeError(f"a callback raised {described(error)}") from error


def _shown(metrics: Any) -> str:
    """Metrics for a line of the log, whose classes may be a user's."""
    try:
        text = str(metrics)
    except Exception as error:
        return f"without a text ({type(error).__name__} in __repr__)"
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "…"
