"""Profiles: the part of a run's controller that has its ranks profiled."""

from __future__ import annotations

import asyncio
import datetime
import logging
import time
from typing import Any

import ray
from ray.train.profiles import agreement, assembly, store
from ray.train.profiles.config import ProfileConfig
from ray.train.profiles.files import folder_of
from ray.train.profiles.order import FAILED, RECORDED, RECORDING, Order
from ray.train.profiles.steps import MEANING
from ray.train.ranks import named_ranks

logger = logging.getLogger("ray.train")

# A living worker answers a question within the first number of seconds; the second is the pause
# between two questions.
_ANSWER_S, _LOOK_AGAIN_S = 60.0, 60.0
# The end of a run, or of a group whose functions have returned, waits so many seconds for a
# profile.
_SETTLE_S = 300.0


class Profiles:
    """The profiles of one run, one at a time. Everything runs in the controller's event loop.

    A profile ends with its attempt: the ranks that have not recorded it then are FAILED.
    """

    def __init__(self, spec: Any):
        self._spec = spec
        self._records: list[dict] = []
        # The attempt whose functions are running.
        self._attempt: Any = None
        self._current: asyncio.Task | None = None
        # The order that RunConfig(profile=...) gives for this attempt.
        self._ordered: Order | None = None
        self._has_configured = spec.run_config.profile is None

    # ---- attempts

    def order_for_attempt(self) -> Order | None:
        """Returns the order for the steps that the next attempt records from its start on, or
        None."""
        self._ordered = None
        if not self._has_configured:
            config: ProfileConfig = self._spec.run_config.profile
            begin = config.skip + config.warmup + 1
            self._ordered = self._order(config, None).at(None, begin)
        return self._ordered

    def started(self, attempt: Any) -> None:
        """Notes that the functions of an attempt run."""
        self._attempt = attempt
        order = self._ordered
        if order is not None and self._current is None:
            config = self._spec.run_config.profile
            self._begin(order, config.ranks, is_armed=True)

    def ended(self) -> None:
        """Notes that the attempt is being stopped and its workers end."""
        self._attempt = None

    @property
    def is_busy(self) -> bool:
        """Tells whether a profile is under way."""
        return self._current is not None

    async def settle(self) -> None:
        """Waits for the profile that is under way, for a bounded time."""
        current = self._current
        if current is not None:
            await asyncio.wait([current], timeout=_SETTLE_S)
            if not current.done():
                current.cancel()
                await asyncio.wait([current])

    # ---- requests

    async def request(self, config: ProfileConfig, timeout_s: float) -> dict:
        """Profiles the next steps of the run; returns the answer of the command train_profile.

        Raises ValueError for unknown ranks, RuntimeError if there is nothing to profile, if another
        profile is under way, or if no rank has recorded anything.
        """
        if self._attempt is None:
            raise RuntimeError(
                "the run has no workers that train at the moment. Ask again when its status is "
                "RUNNING (rayctl train show)"
            )
        if self._current is not None:
            raise RuntimeError(
                f"another profile of the run is under way ({self._records[-1]['id']}). Wait for "
                "its end"
            )
        order = self._order(config, timeout_s)
        record, answer = await self._begin(order, config.ranks, is_armed=False)
        if record["status"] == FAILED and record["trace"] is None:
            raise RuntimeError(record["detail"])
        return answer

    def _order(self, config: ProfileConfig, timeout_s: float | None) -> Order:
        profile_id = self._new_id()
        return Order(
            id=profile_id,
            directory=folder_of(self._spec.storage, profile_id),
            origin_ns=time.time_ns(),
            steps=config.steps,
            warmup=1 if timeout_s is not None else config.warmup,
            record_shapes=config.record_shapes,
            profile_memory=config.profile_memory,
            with_stack=config.with_stack,
            timeout_s=timeout_s,
        )

    def _new_id(self) -> str:
        first = f"profile_{datetime.datetime.now():%Y-%m-%d_%H-%M-%S}"
        used = {record["id"] for record in self._records}
        number, found = 1, first
        while found in used:
            number += 1
            found = f"{first}_{number}"
        return found

    def _begin(self, order: Order, ranks: list[int] | None, is_armed: bool) -> asyncio.Task:
        workers = {info.rank: info for info in self._attempt.group.workers}
        chosen = sorted(workers) if ranks is None else sorted(ranks)
        unknown = [rank for rank in chosen if rank not in workers]
        if unknown and not is_armed:
            raise ValueError(
                f"the run has no {named_ranks(unknown)}: its ranks are 0 to {len(workers) - 1}"
            )
        record = {
            "id": order.id,
            "status": RECORDING,
            "detail": None,
            "time_ns": order.origin_ns,
            "path": order.directory,
            "trace": None,
            "log_file": None,
            "node_id": self._spec.node_id,
            "steps": order.steps,
            "ranks": [],
            "summary": None,
            "memory": {},
        }
        self._records.append(record)
        profile = _Profile(self._spec, self._attempt, order, record, workers)
        loop = asyncio.get_running_loop()
        self._current = loop.create_task(self._carry_out(profile, chosen, unknown, is_armed))
        return self._current

    async def _carry_out(self, profile: _Profile, chosen, unknown, is_armed) -> tuple[dict, dict]:
        record = profile.record
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(None, store.publish, self._spec.run_id, self._records)
            answer = await profile.run(chosen, unknown, is_armed)
        except BaseException as error:
            record["status"] = FAILED
            record["detail"] = f"the profile failed: {type(error).__name__}: {error}"
            if not isinstance(error, Exception):
                raise
            logger.warning("Profile %s: %s", record["id"], record["detail"], exc_info=True)
            answer = {}
        finally:
            if is_armed and record["status"] == RECORDED:
                self._has_configured = True
            self._current = None
            await loop.run_in_executor(None, store.publish, self._spec.run_id, list(self._records))
        if is_armed:
            _say(record, answer)
        return record, answer


def _say(record: dict, answer: dict) -> None:
    """Logs the answer of a configured profile, for which nobody waits."""
    if record["trace"] is not None:
        logger.info("%sThe files of the profile: %s", answer["summary"], record["path"])
    if record["status"] == FAILED:
        logger.warning("Profile %s: %s", record["id"], record["detail"])


class _Profile:
    """One profile, from its order to its files."""

    def __init__(self, spec: Any, attempt: Any, order: Order, record: dict, workers: dict):
        self.record = record
        self._spec, self._attempt, self._order, self._workers = spec, attempt, order, workers

    async def run(self, chosen: list[int], unknown: list[int], is_armed: bool) -> dict:
        """Returns the answer; the record says how it ended."""
        ranks = [rank for rank in chosen if rank not in unknown]
        problems = {rank: "the group has no such rank" for rank in unknown}
        notes: list[str] = []
        if not is_armed:
            found, notes = await agreement.arm_all(self._ask, ranks, self._order)
            problems.update(found)
        waiting = [rank for rank in ranks if rank not in problems]
        results = await asyncio.gather(*[self._result(rank) for rank in waiting])
        by_rank = dict(zip(waiting, results))
        by_rank.update(
            {rank: {"status": FAILED, "detail": text} for rank, text in problems.items()}
        )
        self._conclude(by_rank)
        return await asyncio.get_running_loop().run_in_executor(
            None,
            assembly.assemble,
            assembly.Parts(
                spec=self._spec,
                order=self._order,
                record=self.record,
                workers=self._workers,
                by_rank=by_rank,
                notes=notes,
                phases=self._attempt.phases,
            ),
        )

    async def _ask(self, rank: int, method: str, *arguments: Any) -> dict:
        """Returns the answer of a rank's Recorder, or {"problem": ...}."""
        return await _answer(
            self._workers[rank].actor.profile.remote(method, *arguments), _ANSWER_S
        )

    async def _result(self, rank: int) -> dict:
        """Returns the result of a rank, which may take as long as its steps take."""
        waiting = asyncio.ensure_future(
            _answer(self._workers[rank].actor.profile.remote("result", self._order.id), None)
        )
        while True:
            done, _ = await asyncio.wait([waiting], timeout=_LOOK_AGAIN_S)
            if done:
                result = waiting.result()
                if result.get("problem"):
                    return {"status": FAILED, "detail": result["problem"]}
                return result
            if (await self._ask(rank, "look")).get("is_lost"):
                waiting.cancel()
                return {"status": FAILED, "detail": "its process does not answer"}

    def _conclude(self, by_rank: dict[int, dict]) -> None:
        """Sets the status of the whole profile, and its one line."""
        failed = {rank: one for rank, one in sorted(by_rank.items()) if one["status"] == FAILED}
        self.record["status"] = FAILED if failed or not by_rank else RECORDED
        if not failed:
            return
        stuck = [rank for rank, one in failed.items() if one.get("stuck")]
        if stuck:
            self.record["detail"] = (
                f"{named_ranks(stuck)} made no step within {self._order.timeout_s:g} s: "
                f"{MEANING}. Ask with a longer timeout if their steps take longer"
            )
            return
        texts: dict[str, list[int]] = {}
        for rank, one in failed.items():
            texts.setdefault(one["detail"], []).append(rank)
        self.record["detail"] = "; ".join(
            f"{named_ranks(ranks)}: {text}" for text, ranks in texts.items()
        )


async def _answer(ref: Any, timeout_s: float | None) -> dict:
    try:
        return await asyncio.wait_for(_value(ref), timeout_s)
    except asyncio.TimeoutError:
        return {"problem": f"its process did not answer for {timeout_s:g} s", "is_lost": True}
    except ray.exceptions.RayActorError:
        return {"problem": "its process has ended", "is_lost": True}
    except Exception as error:
        lines = str(error).splitlines()
        return {"problem": f"{type(error).__name__}: {lines[-1] if lines else ''}"}


async def _value(ref: Any) -> Any:
    return await ref
