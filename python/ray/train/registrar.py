"""Registers complete reports: in the record of checkpoints, and with callbacks."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from ray import cloudpickle
from ray.train.errors import described
from ray.train.reported import TrainingReport
from ray.train.spec import RunContext, RunSpec

logger = logging.getLogger("ray.train")

# Metrics of a report are shown with at most so many characters, on the terminal and in the logs.
_MOST_CHARACTERS = 2000


class Registrar:
    """Registers one report after the other. All methods run in the controller's event loop.

    Storage and callbacks may block and have a thread meanwhile. What fails there is told to
    `broke`, once, and nothing is registered any more.
    """

    def __init__(self, spec: RunSpec, manager: Any, broke: Any):
        self.manager = manager
        # The number of reports of the run that are registered.
        self.count = manager.report_index
        self._spec = spec
        self._broke = broke
        self._context: RunContext | None = None
        self._last: asyncio.Task | None = None
        self._changed = asyncio.Event()
        self._failed = False

    def register(self, reports: tuple[TrainingReport | None, ...]) -> None:
        """Registers a report that all ranks have made. reports: by rank (see events.Register)."""
        has_checkpoint = any(one is not None and one.checkpoint_dir_name for one in reports)
        if self._last is None and not has_checkpoint and not self._spec.callbacks:
            # A report without a checkpoint, when nothing waits and no callback is to be called,
            # needs no thread and no task.
            self.manager.advance(self.count)
            self._done()
            return
        self._last = asyncio.get_running_loop().create_task(self._after(self._last, reports))

    async def settled(self) -> None:
        """Waits until every report that register() got is registered."""
        while self._last is not None:
            await asyncio.shield(self._last)

    async def wait_for(self, count: int, timeout_s: float | None) -> None:
        """Waits until `count` reports of the run are registered, at most for timeout_s."""
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
        """Runs in a thread: writes the snapshot, deletes directories beyond num_to_keep, calls the
        callbacks."""
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
    """Calls a callback. An exception that ends a program, such as that of sys.exit(), would end the
    event loop unnoticed; here it becomes an ordinary error."""
    try:
        method(*arguments)
    except Exception:
        raise
    except BaseException as error:
        raise RuntimeError(f"a callback raised {described(error)}") from error


def _shown(metrics: Any) -> str:
    """Returns metrics as text for a line of the log. Their classes may be a user's."""
    try:
        text = str(metrics)
    except Exception as error:
        return f"without a text ({type(error).__name__} in __repr__)"
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "…"
