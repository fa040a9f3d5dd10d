"""Carries out what the state machine of a run decides, in the event loop of the controller."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from typing import Any

import ray
from ray import _raylet, cloudpickle
from ray.train import events as ev
from ray.train import logs
from ray.train.attempt import Attempt
from ray.train.checkpoints import CheckpointManager
from ray.train.claim import FolderClaim
from ray.train.controller import Limits, RunMachine, State
from ray.train.drains import DrainWatch
from ray.train.errors import unpack
from ray.train.profiles import command
from ray.train.profiles.coordinator import Profiles
from ray.train.ranks import named_ranks
from ray.train.records import RecordWriter
from ray.train.registrar import Registrar
from ray.train.result import Result
from ray.train.room import possible_workers
from ray.train.run_metrics import RunMetrics
from ray.train.spec import RunSpec
from ray.train.state import RunRecord

logger = logging.getLogger("ray.train")

# At most so many different failures of one attempt are logged.
_MOST_SHOWN = 4
# The record of the run shows so many characters of the function's configuration.
_MOST_CHARACTERS = 2000
# The nodes are asked for room to grow at most once in so many seconds.
_SHORTEST_INTERVAL_S = 1.0


def limits_of(spec: RunSpec) -> Limits:
    """Returns the limits of the machine, from the user's configurations."""
    scaling, failure = spec.scaling_config, spec.run_config.failure_config
    return Limits(
        min_workers=scaling.min_workers,
        max_workers=scaling.max_workers,
        max_failures=failure.max_failures,
        controller_failure_limit=failure.controller_failure_limit,
        max_preemption_failures=failure.max_preemption_failures,
        start_timeout_s=spec.settings.start_timeout_s,
        failure_gather_s=spec.settings.failure_gather_s,
        resize_interval_s=max(_SHORTEST_INTERVAL_S, scaling.elastic_resize_monitor_interval_s),
        preemption_grace_s=failure.preemption_grace_s,
        relax_on_preemption=failure.relax_collectives_on_preemption,
    )


class Run:
    """One run from Begin to End (see TrainController for what others call)."""

    def __init__(self, spec: bytes):
        self._spec: RunSpec = cloudpickle.loads(spec)
        spec = self._spec
        os.environ.update(spec.settings.forwarded)
        logs.configure(
            "controller", spec.run_config.logging_config.level, {"run_name": spec.name}, False
        )
        claim = FolderClaim(spec.storage)
        manager = CheckpointManager(spec.run_config.checkpoint_config, spec.storage, claim)
        manager.load()
        self._machine = RunMachine(limits_of(spec))
        self._registrar = Registrar(spec, manager, self._broke)
        self._record = self._new_record()
        self._writer = RecordWriter(spec.run_id, self._record)
        self._metrics = RunMetrics(spec.name, spec.run_id, spec.settings.metrics)
        self._profiles = Profiles(spec)
        # When the start or the end of the current group began.
        self._phase_began = 0.0
        self._attempt: Attempt | None = None
        # The reports of the run before the current attempt, and the complete reports of this
        # attempt.
        self._reports_before = self._complete = 0
        self._timer: asyncio.TimerHandle | None = None
        self._ended: asyncio.Future | None = None
        self._telling: asyncio.Task | None = None
        self._drains: DrainWatch | None = None
        # The drained nodes of which the current attempt has been told.
        self._known_drains: dict[str, int] = {}

    def _new_record(self) -> RunRecord:
        spec = self._spec
        context = ray.get_runtime_context()
        return RunRecord(
            spec.run_id,
            spec.name,
            context.get_job_id(),
            context.get_actor_id(),
            {
                "train_loop_config": self._shown_config(),
                "backend_config": {"framework": None, "config": repr(spec.backend_config)},
                "scaling_config": repr(spec.scaling_config),
                "datasets": sorted(spec.datasets),
                "data_config": repr(spec.data_config),
                "run_config": repr(spec.run_config),
                "framework_versions": {"ray": ray.__version__},
                "controller_node_id": spec.node_id,
                "controller_log_file_path": logs.path_of(
                    "app", "controller", context.get_worker_id()
                ),
            },
        )

    def _shown_config(self) -> str | None:
        """Returns the configuration of the function as text, if it needs none of the user's
        modules."""
        try:
            blob = self._spec.config_blob
            return repr(cloudpickle.loads(blob))[:_MOST_CHARACTERS] if blob else None
        except Exception:
            return None

    # ---- called by TrainController

    async def run(self) -> dict:
        loop = asyncio.get_running_loop()
        self._ended = loop.create_future()
        if self._spec.settings.watch_drains:
            self._drains = DrainWatch(loop, self._look_at_drains)
        command.serve(self._spec.run_id, self._profiles, loop)
        self._send(ev.Begin())
        outcome: ev.Outcome = await self._ended
        command.end()
        await self._profiles.settle()
        if self._telling is not None:
            await self._telling
        await self._writer.finish()
        manager = self._registrar.manager
        latest = manager.latest
        storage = self._spec.storage
        result = Result(
            metrics=latest.metrics if latest else None,
            checkpoint=latest.checkpoint if latest else None,
            error=None,
            path=storage.experiment_fs_path,
            best_checkpoints=[(one.checkpoint, one.metrics) for one in manager.best()],
            return_value=None,
            _storage_filesystem=storage.storage_filesystem,
        )
        return {"outcome": outcome, "result": result}

    async def take_report(self, attempt: int, rank: int, report: Any) -> None:
        self._send(ev.Reported(attempt, rank, report))
        await self._registrar.settled()

    async def reported_checkpoints(
        self, attempt: int, made: int, mode: str, timeout_s: float | None
    ) -> list:
        await self._registrar.wait_for(self._reports_before + made, timeout_s)
        return self._registrar.manager.results()

    async def abort(self) -> None:
        self._send(ev.Abort())
        if self._ended is not None:
            await asyncio.shield(self._ended)
            await self._writer.finish()

    def ranks_missing(self, attempt: int, waiting: dict | None) -> None:
        self._record.set_waiting(attempt, waiting)
        self._writer.look()

    async def sees_storage(self) -> bool:
        see = self._spec.storage.sees_marker
        return await asyncio.get_running_loop().run_in_executor(None, see)

    def state(self) -> dict:
        return self._record.to_dict()

    def _look_at_drains(self) -> None:
        """Tells the machine of nodes with workers of the attempt that are being drained."""
        if self._machine.state not in (State.RUNNING, State.FAILING):
            return
        nodes = self._drains.nodes if self._drains is not None else {}
        for node_id, deadline_ms in nodes.items():
            if self._known_drains.get(node_id) == deadline_ms:
                continue
            workers = self._attempt.group.workers if self._attempt is not None else []
            ranks = [info.rank for info in workers if info.node_id == node_id]
            if ranks:
                self._known_drains[node_id] = deadline_ms
                end = self._now() + deadline_ms / 1000 - time.time() if deadline_ms else None
                attempt = self._attempt.number
                self._send(ev.NodeDraining(attempt, {node_id: ranks}, end, deadline_ms or None))

    # ---- the machine

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _send(self, event: Any) -> None:
        """Hands an event to the machine and carries out its actions."""
        if isinstance(event, ev.WorkerFailed) and event.failure.kind == ev.DIED:
            self._record.worker_died(event.attempt, event.rank)
        try:
            for action in self._machine.handle(event, self._now()):
                _DO[type(action)](self, action)
        except Exception as error:
            if isinstance(event, ev.ControllerBroke):
                raise
            logger.exception("The controller failed.")
            self._send(ev.ControllerBroke(error))
        self._set_timer()
        self._writer.look()

    def _broke(self, error: BaseException) -> None:
        self._send(ev.ControllerBroke(error))

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._machine.deadline is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(self._machine.deadline, self._send, ev.Tick())

    # ---- its actions

    def _measure_room(self, action: ev.MeasureRoom) -> None:
        asyncio.get_running_loop().create_task(self._measure(action.attempt))

    async def _measure(self, number: int) -> None:
        try:
            possible = await self._possible_workers(number)
        except Exception as error:
            # The machine waits for an answer, and with its present size it looks again later.
            logger.warning("The room for workers could not be measured: %s", error)
            possible = self._machine.size
        self._send(ev.RoomMeasured(number, possible))

    async def _possible_workers(self, number: int) -> int:
        scaling = self._spec.scaling_config
        loop = asyncio.get_running_loop()
        leaving = self._drains.nodes if self._drains is not None else {}
        nodes = [
            node
            for node in await loop.run_in_executor(None, _raylet.nodes)
            if node["NodeID"] not in leaving
        ]
        held: dict[str, int] = {}
        attempt = self._attempt
        if attempt is not None and attempt.number == number:
            for info in attempt.group.workers:
                held[info.node_id] = held.get(info.node_id, 0) + 1
        return possible_workers(
            nodes,
            scaling.resources_of_worker(),
            scaling.placement_strategy,
            scaling.max_workers,
            held,
            scaling.label_selectors(scaling.max_workers),
        )

    def _start_group(self, action: ev.StartGroup) -> None:
        resources = self._spec.scaling_config.resources_of_worker()
        self._record.begin_attempt(action.attempt, [resources] * action.size)
        self._phase_began = self._now()
        profile = self._profiles.order_for_attempt()
        self._attempt = Attempt(self._spec, action.attempt, action.size, self._send, profile)
        self._reports_before, self._complete = self._registrar.count, 0
        self._known_drains = {}
        latest = self._registrar.manager.latest
        self._attempt.begin(latest.checkpoint if latest else None, self._reports_before)

    def _stop_group(self, action: ev.StopGroup) -> None:
        self._phase_began = self._now()
        self._profiles.ended()
        if action.orderly and self._profiles.is_busy:
            # The functions have returned, and a profile's results may still be on their way from
            # the workers.
            asyncio.get_running_loop().create_task(self._stop_after_profile(action))
            return
        if self._attempt is None or self._attempt.number != action.attempt:
            # The controller broke before it had made the group, so that there is nothing to stop.
            self._record.end_attempt(action.attempt)
            stopped = ev.GroupStopped(action.attempt)
            asyncio.get_running_loop().call_soon(self._send, stopped)
            return
        stopping = self._attempt.stop(action.orderly, self._complete)
        asyncio.get_running_loop().create_task(self._finish_stop(action, stopping))

    async def _stop_after_profile(self, action: ev.StopGroup) -> None:
        await self._profiles.settle()
        stopping = self._attempt.stop(action.orderly, self._complete)
        await self._finish_stop(action, stopping)

    async def _finish_stop(self, action: ev.StopGroup, stopping: asyncio.Task) -> None:
        try:
            unfinished = await stopping
            await self._registrar.settled()
            if self._telling is not None:
                await self._telling
            await self._delete_unfinished(unfinished)
        except Exception as error:
            logger.exception("The end of a group failed.")
            self._send(ev.ControllerBroke(error))
        self._metrics.took("shutdown", self._now() - self._phase_began)
        self._record.end_attempt(action.attempt)
        self._send(ev.GroupStopped(action.attempt))

    async def _delete_unfinished(self, names: list[str]) -> None:
        """Deletes directories whose report not all ranks have made. A name may be used again and
        again, so a directory of a registered checkpoint stays; only what an interrupted upload left
        in it goes."""
        storage = self._spec.storage
        kept = [storage.relative(one.checkpoint) for one in self._registrar.manager.results()]
        for name in set(names):
            is_kept = any(f"{one}/".startswith(f"{name}/") for one in kept)
            remove = storage.finish if is_kept else storage.delete
            try:
                await asyncio.get_running_loop().run_in_executor(None, remove, name)
            except OSError as error:
                # Storage that fails now may work again for the next group.
                logger.warning("What ranks uploaded to %s could not be deleted: %s", name, error)

    def _register(self, action: ev.Register) -> None:
        self._complete += 1
        self._registrar.register(action.reports)
        self._writer.reported(action.reports)

    def _tell_failures(self, action: ev.TellFailures) -> None:
        texts: dict[str, list[int]] = {}
        for rank, failure in action.failures.items():
            texts.setdefault(failure.traceback or failure.summary, []).append(rank)
        for text, ranks in list(texts.items())[:_MOST_SHOWN]:
            logger.error("%s failed: %s", named_ranks(ranks).capitalize(), text)
        if len(texts) > _MOST_SHOWN:
            logger.error("%d more ranks failed in other ways.", len(texts) - _MOST_SHOWN)
        if self._spec.callbacks:
            failures = {rank: as_exception(one) for rank, one in action.failures.items()}
            self._telling = asyncio.get_running_loop().create_task(
                self._registrar.tell_failures(failures)
            )

    def _tell_draining(self, action: ev.TellDraining) -> None:
        self._attempt.tell_draining(action.deadline_ms, action.node_to_ranks, action.optional)

    def _show(self, action: ev.Show) -> None:
        self._record.show(action.status, action.detail)
        if action.status:
            self._metrics.state(action.status)
            logger.debug("The run is %s. %s", action.status, action.detail)

    def _show_attempt(self, action: ev.ShowAttempt) -> None:
        if action.status == "RUNNING":
            self._metrics.took("start", self._now() - self._phase_began)
            self._record.set_workers(
                self._attempt.group.workers, self._spec.scaling_config.resources_of_worker()
            )
            # A node may have been drained before the functions ran, when the machine was not told.
            asyncio.get_running_loop().call_soon(self._look_at_drains)
            self._profiles.started(self._attempt)
        self._record.show_attempt(action.attempt, action.status, action.detail)

    def _say(self, action: ev.Say) -> None:
        logger.log(logging.WARNING if action.level == "warning" else logging.INFO, action.text)

    def _end(self, action: ev.End) -> None:
        if not self._ended.done():
            self._ended.set_result(action.outcome)


_DO = {
    ev.MeasureRoom: Run._measure_room,
    ev.StartGroup: Run._start_group,
    ev.StopGroup: Run._stop_group,
    ev.Register: Run._register,
    ev.TellFailures: Run._tell_failures,
    ev.TellDraining: Run._tell_draining,
    ev.Show: Run._show,
    ev.ShowAttempt: Run._show_attempt,
    ev.Say: Run._say,
    ev.End: Run._end,
}


def as_exception(failure: ev.WorkerFailure) -> BaseException:
    """Returns the exception of a failure. Restoring it needs the user's modules if its class is one
    of theirs."""
    error = failure.error
    return error if isinstance(error, BaseException) else unpack(error)
