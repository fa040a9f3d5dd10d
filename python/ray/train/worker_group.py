"""The workers of one attempt, as the controller and backends see them."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import threading
from typing import Any, Callable

import ray
from ray import _raylet
from ray.train import processes
from ray.train.ranks import WorkerInfo, assign_ranks
from ray.train.synchronization import SynchronizationActor
from ray.train.worker import RayTrainWorker
from ray.util.placement_group import placement_group_of_actor, remove_placement_group
from ray.util.scheduling_strategies import (
    NodeAffinitySchedulingStrategy,
    PlacementGroupSchedulingStrategy,
)

logger = logging.getLogger("ray.train")

# Workers get so many seconds to leave by themselves before they are killed.
LEAVE_S = 5.0
# So many calls of profile() may be under way in a worker: one waits for a result, the others are
# short.
_PROFILE_CALLS = 3


def _worker_class() -> Any:
    cls = RayTrainWorker
    if not hasattr(cls.run, "__ray_method_options__"):
        ray.method(concurrency_group="run")(cls.run)
        ray.method(concurrency_group="health")(cls.ping)
        ray.method(concurrency_group="profile")(cls.profile)
    return ray.remote(concurrency_groups={"run": 1, "health": 1, "profile": _PROFILE_CALLS})(cls)


class WorkerGroup:
    """A placement group, its workers in the order of their ranks, and their meeting place.

    start() may be cancelled; stop() is called in any case, and leaves nothing behind.
    """

    def __init__(self, name: str, size: int, resources: dict, strategy: str, node_id: str):
        """`name` is that of the placement group, `resources` are those of one worker, and `node_id`
        is that of the controller's node."""
        self.name = name
        self.size = size
        self.workers: list[WorkerInfo] = []
        self.synchronization: Any = None
        self._resources = resources
        self._strategy = strategy
        self._node_id = node_id
        self._placement: Any = None
        self._actors: list[Any] = []
        # Known only with the facts about the workers.
        self._meeting_pid: int | None = None

    def __len__(self) -> int:
        return self.size

    # ---- starting, in the event loop

    def create(
        self,
        selectors: list[dict] | None,
        runtime_env: dict,
        timeout_s: float | None,
        warn_interval_s: float,
    ) -> None:
        """Asks for everything at once, and returns without waiting for any of it."""
        self._placement = placement_group_of_actor(
            [dict(self._resources) for _ in range(self.size)],
            self._strategy,
            self.name,
            selectors,
        )
        self.synchronization = (
            ray.remote(SynchronizationActor)
            .options(
                num_cpus=0,
                max_concurrency=max(1000, 4 * self.size),
                enable_task_events=False,
                scheduling_strategy=NodeAffinitySchedulingStrategy(self._node_id, soft=False),
            )
            .remote(self.size, timeout_s, warn_interval_s)
        )
        cls = _worker_class()
        options = self._actor_options(runtime_env)
        self._actors = [
            cls.options(
                **options,
                scheduling_strategy=PlacementGroupSchedulingStrategy(self._placement, index),
            ).remote()
            for index in range(self.size)
        ]

    def _actor_options(self, runtime_env: dict) -> dict:
        own = dict(self._resources)
        options: dict[str, Any] = {"num_cpus": own.pop("CPU", 0), "num_gpus": own.pop("GPU", 0)}
        if "memory" in own:
            options["memory"] = own.pop("memory")
        if own:
            options["resources"] = own
        if runtime_env:
            options["runtime_env"] = runtime_env
        return options

    async def placed(self) -> bool:
        """Waits until the resources are reserved; False when the group was removed meanwhile."""
        key = self._placement.id.binary()
        loop = asyncio.get_running_loop()
        return bool(await loop.run_in_executor(None, _raylet.wait_group, key, None))

    def why_not_placed(self) -> str:
        """Returns the cluster's reason why the group still waits."""
        info = _raylet.group_info(self._placement.id.binary())
        return (info or {}).get("why") or "no node has room for it at the moment"

    async def describe(self) -> None:
        """Waits until all processes are there, and deals the ranks. Raises what actors raise."""
        self._meeting_pid, *facts = await asyncio.gather(
            self.synchronization.pid.remote(),
            *[actor.describe.remote() for actor in self._actors],
        )
        infos = [WorkerInfo(actor=actor, **fact) for actor, fact in zip(self._actors, facts)]
        self.workers = assign_ranks(infos)

    # ---- for backends, in a thread of the controller

    def execute_async(self, function: Callable, *args: Any, **kwargs: Any) -> list[Any]:
        """Calls the function in every worker; returns references to the results, by rank."""
        return [info.actor.execute.remote(function, args, kwargs) for info in self.workers]

    def execute(self, function: Callable, *args: Any, **kwargs: Any) -> list[Any]:
        """Calls the function in every worker at once; returns the results, by rank.

        Raises what the function raised on one of them, and ActorDiedError for a dead worker.
        """
        return ray.get(self.execute_async(function, *args, **kwargs))

    def execute_single(self, rank: int, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """Calls the function in one worker; returns its result."""
        return ray.get(self.workers[rank].actor.execute.remote(function, args, kwargs))

    # ---- the end, in the event loop

    def kill(self) -> None:
        """Kills all processes of the group at once, and waits for nothing."""
        for actor in (*self._actors, self.synchronization):
            if actor is not None:
                # The head cannot store the end of an actor that has not started; the actor ends
                # with its group.
                with contextlib.suppress(ray.exceptions.OutOfDiskError):
                    ray.kill(actor)

    async def stop(self, orderly: bool) -> None:
        """Ends workers, meeting place and placement group, and waits until they are gone.

        orderly: workers may run their exit functions, for up to LEAVE_S seconds.
        """
        near = [info.pid for info in self.workers if info.node_id == self._node_id]
        gone = [processes.ended(pid) for pid in near]
        meeting_gone = processes.ended(self._meeting_pid) if self._meeting_pid else None
        if orderly and self._actors:
            leaving = [actor.__ray_terminate__.remote() for actor in self._actors]
            await asyncio.wait(
                [asyncio.ensure_future(_settled(ref)) for ref in leaving], timeout=LEAVE_S
            )
            await processes.wait_all(gone, LEAVE_S)
        self.kill()
        placement = self._placement
        removed = None
        if placement is not None:
            removed = _in_a_thread(lambda: remove_placement_group(placement))
        actors = [actor for actor in (*self._actors, self.synchronization) if actor is not None]
        if dead := [actor.__ray_ready__.remote() for actor in actors]:
            await asyncio.wait(
                [asyncio.ensure_future(_settled(ref)) for ref in dead], timeout=LEAVE_S
            )
        await processes.wait_all([*gone, meeting_gone], LEAVE_S)
        if removed is not None:
            # The group's room is free at once. The answer waits for the head's disk, which may be
            # full.
            await asyncio.wait([removed], timeout=LEAVE_S)
            if removed.done():
                removed.result()
        self._actors, self._placement, self.synchronization = [], None, None


def _in_a_thread(function: Callable[[], None]) -> asyncio.Future:
    """Calls the function in a thread that nobody waits for at the end of the process."""
    loop = asyncio.get_running_loop()
    outcome: concurrent.futures.Future = concurrent.futures.Future()

    def run() -> None:
        try:
            outcome.set_result(function())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, name="ray-train-removal", daemon=True).start()
    return asyncio.wrap_future(outcome, loop=loop)


async def _settled(ref: Any) -> None:
    """Waits for a reference, whatever its value or error is."""
    try:
        await ref
    except Exception:
        pass
