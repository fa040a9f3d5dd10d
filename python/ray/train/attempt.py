"""One attempt of a run: starts a group of workers, watches it, and ends it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from typing import Any, Callable, Iterator

import ray

from ray.exceptions import RayActorError, RayTaskError
from ray.train import data, worker
from ray.train import events as ev
from ray.train.backend import Backend
from ray.train.errors import WorkerGroupStartupFailedError, WorkerHealthCheckFailedError
from ray.train.ranks import environment_of
from ray.train.session import WorkerSetup
from ray.train.spec import RunSpec
from ray.train.worker_group import WorkerGroup

logger = logging.getLogger("ray.train")

# Every worker imports these modules besides those of its backend.
_OWN_MODULES = (
    "ray.train.worker",
    "ray.train.context",
    "ray.train.collective",
    "ray.train.profiles.foreign",
    "ray.train.reporter",
    "ray.train.storage",
)
# After so many seconds without room for the group, a line says why.
_SAY_WHY_S = 1.0
# Data for all workers is put into the object store once if it has at least so many bytes.
_LARGE_BYTES = 64 << 10
# Within so many seconds the death of a process becomes known.
_DEATH_S = 0.5
# Within so many seconds workers must answer when they are asked whether they live.
_ANSWER_S = 2.0


class Attempt:
    """A group from its creation to its end. Events go to `send`; runs in the event loop."""

    def __init__(
        self,
        spec: RunSpec,
        number: int,
        size: int,
        send: Callable[[Any], None],
        profile: Any = None,
    ):
        """`profile` is the Order of a profile that begins with the functions, or None."""
        self.number = number
        # Parts of the start: name, begin and end in nanoseconds since the epoch.
        self.phases: list[tuple[str, int, int]] = []
        self._profile = profile
        self.group = WorkerGroup(
            f"ray_train_{spec.run_id}_{number}",
            size,
            spec.scaling_config.resources_of_worker(),
            spec.scaling_config.placement_strategy,
            spec.node_id,
        )
        self._spec = spec
        self._send = send
        self._backend: Backend = spec.backend_config.backend_cls()
        self._tasks: set[asyncio.Task] = set()
        self._started = False
        # Set once reports may be complete before all ranks have made them.
        self._relaxed = False
        self._stopping: asyncio.Task | None = None

    def begin(self, checkpoint: Any, reports_before: int) -> None:
        """Starts the group in the background. checkpoint: where its functions go on from."""
        self._spawn(self._start(checkpoint, reports_before))

    def stop(self, orderly: bool, complete: int) -> asyncio.Task:
        """Ends the group; the task's result are directories where files of unfinished reports lie.

        complete: the number of reports that all ranks have made. A second call, which is not
        orderly, hurries the first one.
        """
        if self._stopping is None:
            self._stopping = asyncio.get_running_loop().create_task(self._stop(orderly, complete))
        elif not orderly:
            self.group.kill()
        return self._stopping

    def tell_draining(
        self, deadline_ms: int | None, node_to_ranks: dict, optional: list[int]
    ) -> None:
        """Tells the ranks which of their nodes go away, and for which ranks they need not wait."""
        self._relaxed = self._relaxed or bool(optional)
        if self.group.synchronization is not None:
            self.group.synchronization.set_draining.remote(deadline_ms, node_to_ranks, optional)

    def _spawn(self, coroutine) -> asyncio.Task:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # ---- the start

    async def _start(self, checkpoint: Any, reports_before: int) -> None:
        try:
            await self._bring_up(checkpoint, reports_before)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            failure = await self._start_failure(error)
            self._send(ev.GroupFailed(self.number, failure))

    async def _bring_up(self, checkpoint: Any, reports_before: int) -> None:
        spec, group = self._spec, self.group
        settings, scaling = spec.settings, spec.scaling_config
        logger.info(
            "Starting a group of %d workers, each with %s.",
            len(group),
            scaling.resources_of_worker(),
        )
        group.create(
            scaling.label_selectors(len(group)),
            self._runtime_env(),
            settings.collective_timeout_s,
            settings.collective_warn_interval_s,
        )
        self._spawn(self._wait_for_room())
        with self._phase("start of the processes"):
            await group.describe()
        shards = await self._shards()
        controller = ray.get_runtime_context().current_actor
        group.synchronization.tell_of_missing.remote(controller, self.number)
        prepared = [
            info.actor.prepare.remote(
                self._setup(
                    info,
                    controller=controller,
                    shards=shards[info.rank] if shards else None,
                    checkpoint=checkpoint,
                    reports_before=reports_before,
                )
            )
            for info in group.workers
        ]
        with self._phase("preparation of the ranks"):
            await asyncio.gather(*prepared)
        if type(self._backend) is not Backend:
            with self._phase("process group"):
                await asyncio.get_running_loop().run_in_executor(None, self._connect)
        self._launch()

    @contextlib.contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        begin = time.time_ns()
        yield
        self.phases.append((name, begin, time.time_ns()))

    def _runtime_env(self) -> dict:
        environment = self._spec.run_config.worker_runtime_env
        modules = self._spec.backend_config.preload
        if modules and "preload" not in environment:
            environment = {**environment, "preload": [*modules, *_OWN_MODULES]}
        return environment

    async def _wait_for_room(self) -> None:
        waiting = self._spawn(self.group.placed())
        done, _ = await asyncio.wait([waiting], timeout=_SAY_WHY_S)
        if not done:
            self.say_why()
        if await waiting:
            self._send(ev.GroupPlaced(self.number))

    def say_why(self) -> None:
        """Logs why the group still waits."""
        logger.warning(
            "The group of %d workers (each %s) waits for resources: %s.",
            len(self.group),
            self._spec.scaling_config.resources_of_worker(),
            self.group.why_not_placed(),
        )

    async def _shards(self) -> list[dict] | None:
        spec = self._spec
        if not spec.datasets:
            return None
        return await asyncio.get_running_loop().run_in_executor(
            None, data.shards_for, spec.datasets, spec.data_config, len(self.group)
        )

    def _setup(self, info, **of_this_attempt: Any) -> WorkerSetup:
        spec = self._spec
        settings = spec.settings
        directory = None
        if settings.change_directory:
            # The session directory has the same name on all nodes, but not always the same parent
            # directory, so each worker completes this path with its own node's.
            directory = os.path.join("artifacts", spec.name)
        return WorkerSetup(
            run_id=spec.run_id,
            experiment_name=spec.name,
            attempt=self.number,
            info=info.without_actor(),
            world_size=len(self.group),
            storage=spec.storage,
            synchronization=self.group.synchronization,
            environment={
                **settings.forwarded,
                **environment_of(info, self.group.workers, settings.share_gpus),
            },
            working_directory=directory,
            log_level=spec.run_config.logging_config.level,
            patch_print=settings.patch_print,
            upload_warn_interval_s=settings.upload_warn_interval_s,
            exports_metrics=settings.metrics,
            profile=self._profile if self._records(info.rank) else None,
            **of_this_attempt,
        )

    def _records(self, rank: int) -> bool:
        """Tells whether the rank takes part in the profile that begins with the functions."""
        config = self._spec.run_config.profile
        return config is not None and (config.ranks is None or rank in config.ranks)

    def _connect(self) -> None:
        config = self._spec.backend_config
        self._backend.on_start(self.group, config)
        self._backend.on_training_start(self.group, config)

    def _launch(self) -> None:
        spec = self._spec
        function, config = _shared(spec.function), _shared(spec.config)
        context = spec.backend_config.train_func_context
        for info in self.group.workers:
            outcome = info.actor.run.remote(function, config, context)
            self._spawn(self._watch(info, outcome))
            self._spawn(self._check_health(info))
        self._started = True
        logger.info(
            "Started a group of %d workers:\n%s",
            len(self.group),
            "\n".join(
                f"- (ip={info.node_ip}, pid={info.pid}) world_rank={info.rank}, "
                f"local_rank={info.local_rank}, node_rank={info.node_rank}"
                for info in self.group.workers
            ),
        )
        self._send(ev.GroupStarted(self.number))

    async def _start_failure(self, error: Exception) -> ev.StartFailure:
        """Describes the failure and whether another attempt may help. It may when a worker died,
        whatever was raised."""
        dead = error if isinstance(error, RayActorError) else await self._death()
        if dead is not None:
            text = f"a worker ended while the group was being started: {_first_line(dead)}"
            return ev.StartFailure(WorkerGroupStartupFailedError(f"{text}\n{dead}"), True, text)
        if isinstance(error, RayTaskError) and isinstance(error.cause, Exception):
            error = error.cause
        return ev.StartFailure(error, False, f"{type(error).__name__}: {_first_line(error)}")

    async def _death(self) -> Exception | None:
        # A death breaks other calls first, so their errors may arrive before the death is known.
        await asyncio.sleep(_DEATH_S)
        pings = [asyncio.ensure_future(info.actor.ping.remote()) for info in self.group.workers]
        if not pings:
            return None
        done, _ = await asyncio.wait(pings, timeout=_ANSWER_S)
        errors = [ping.exception() for ping in done]
        return next((one for one in errors if isinstance(one, RayActorError)), None)

    # ---- while it runs

    async def _watch(self, info, outcome) -> None:
        """Tells how the function of one rank ended."""
        try:
            result = await outcome
        except asyncio.CancelledError:
            raise
        except Exception as error:
            # The process died or did not answer. An exception of the training function does not
            # come here, because run() returns it as a value.
            self._send(ev.WorkerFailed(self.number, info.rank, _death_of(info, error)))
            return
        if result["status"] == worker.FINISHED:
            self._send(ev.WorkerFinished(self.number, info.rank, result["value"]))
        else:
            failure = ev.WorkerFailure(
                ev.RAISED, result["error"], result["traceback"], result["summary"]
            )
            self._send(ev.WorkerFailed(self.number, info.rank, failure))

    async def _check_health(self, info) -> None:
        """Finds a process that is alive but does not answer. No event would report it."""
        timeout = self._spec.settings.health_timeout_s
        while True:
            await asyncio.sleep(timeout / 10)
            try:
                await asyncio.wait_for(_ignoring_death(info.actor.ping.remote()), timeout)
            except asyncio.TimeoutError:
                error = TimeoutError(
                    f"The process {info.pid} on {info.node_ip} did not answer for {timeout:g} s "
                    "(RAY_TRAIN_WORKER_HEALTH_CHECK_TIMEOUT_S)."
                )
                self._send(ev.WorkerFailed(self.number, info.rank, _death_of(info, error)))
                return

    # ---- the end

    async def _stop(self, orderly: bool, complete: int) -> list[str]:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if orderly and self._started and type(self._backend) is not Backend:
            try:
                await asyncio.get_running_loop().run_in_executor(
                    None, self._backend.on_shutdown, self.group, self._spec.backend_config
                )
            except Exception as error:
                logger.warning("The end of the backend failed: %s", _first_line(error))
        # Ranks of a drained node may have uploaded to a directory after it was registered.
        ends_as_one = orderly and not self._relaxed
        unfinished = [] if ends_as_one else await self._unfinished(complete)
        await self.group.stop(orderly)
        return unfinished

    async def _unfinished(self, complete: int) -> list[str]:
        if not self._started:
            return []
        try:
            return await asyncio.wait_for(
                _value(self.group.synchronization.agreed_after.remote(complete)), _ANSWER_S
            )
        except Exception:
            # The meeting place is dead, too, or hangs, so nobody knows the directories and they
            # stay.
            return []


async def _value(ref: Any) -> Any:
    return await ref


async def _ignoring_death(ref: Any) -> None:
    try:
        await ref
    except RayActorError:
        # The call that waits for the function reports the death.
        pass


def _shared(blob: bytes) -> Any:
    return ray.put(blob) if len(blob) > _LARGE_BYTES else blob


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


def _death_of(info, error: BaseException) -> ev.WorkerFailure:
    failure = WorkerHealthCheckFailedError(
        f"The worker of rank {info.rank} (pid {info.pid}, {info.node_ip}) failed its health check.",
        error,
    )
    return ev.WorkerFailure(ev.DIED, failure, "", f"its process failed: {_first_line(error)}")
