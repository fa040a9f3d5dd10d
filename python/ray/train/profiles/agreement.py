"""Lets the ranks of a run begin a profile at the same step, while they train on.

No rank waits for another one. The controller asks how far all are, tells them a step that none has
reached, and starts over with a later one if one of them was faster than that message. Ranks that
are at very different steps do not depend on each other in each step; they begin with their own next
step each.
"""

from __future__ import annotations

import asyncio
from typing import Any, Awaitable, Callable

from ray.train.profiles.order import Order
from ray.train.profiles.steps import finest

# The ranks are asked so many times, each time for a later step, before they count as apart.
_ROUNDS = 6
# Ranks still count as in step if they are apart by so many steps, besides those that they make
# while they are asked.
_APART = 4
# A profiler that has started too early gets so many seconds to stop at its next step.
_STOP_S = 60.0

_NOT_IN_STEP = (
    "The ranks are not at the same step, so that each began with its own next one: compare their "
    "steps by time, not by number."
)

# Asks one rank. Takes the rank, the name of a method of Recorder and arguments; returns its answer,
# in which "problem" says why there is none.
Ask = Callable[..., Awaitable[dict]]


async def arm_all(ask: Ask, ranks: list[int], order: Order) -> tuple[dict[int, str], list[str]]:
    """Arms the ranks.

    Returns the problem of each rank that cannot record, and sentences for the summary.
    """
    before = await _all(ask, ranks, "look")
    looks = await _all(ask, ranks, "look")
    problems = {rank: one["problem"] for rank, one in looks.items() if one.get("problem")}
    margin = 0
    counts = {rank: one["counts"] for rank, one in looks.items() if rank not in problems}
    seen = {rank: before[rank].get("counts") or counts[rank] for rank in counts}
    for _ in range(_ROUNDS):
        if not counts:
            return problems, []
        margin = 2 * margin + 3 * _progress(seen, counts)
        chosen, is_common = _chosen(order, counts, margin)
        answers = await _all(ask, list(counts), "arm", chosen)
        for rank, one in answers.items():
            if one.get("problem"):
                problems[rank] = one["problem"]
        answers = {rank: one for rank, one in answers.items() if rank not in problems}
        if all(one["armed"] for one in answers.values()):
            return problems, [] if is_common else [_NOT_IN_STEP]
        await _all(ask, list(answers), "cancel", order.id, "another step was chosen", _STOP_S)
        seen, counts = counts, {rank: one["counts"] for rank, one in answers.items()}
        margin += 1
    # Steps pass faster than messages, so each rank begins as soon as it can.
    kind = finest(list(counts.values()))
    answers = await _all(ask, list(counts), "arm", order.at(kind, None))
    problems.update({rank: one["problem"] for rank, one in answers.items() if one.get("problem")})
    return problems, [_NOT_IN_STEP]


async def _all(ask: Ask, ranks: list[int], method: str, *arguments: Any) -> dict[int, dict]:
    answers = await asyncio.gather(*[ask(rank, method, *arguments) for rank in ranks])
    return dict(zip(ranks, answers))


def _progress(before: dict[int, dict], after: dict[int, dict]) -> int:
    """Returns how many steps the fastest rank has made between two rounds of questions."""
    kind = finest(list(after.values()))
    if kind is None:
        return 0
    return max(after[rank][kind] - before[rank][kind] for rank in after if rank in before)


def _chosen(order: Order, counts: dict[int, dict], margin: int) -> tuple[Order, bool]:
    """Returns the order with its first step, and whether that is the same step on all ranks."""
    kind = finest(list(counts.values()))
    if kind is None:
        # No rank has begun, so all of them count from the same beginning.
        return order.at(None, 1 + order.warmup), True
    numbers = [one[kind] for one in counts.values()]
    if max(numbers) - min(numbers) > _APART + margin:
        return order.at(kind, None), False
    return order.at(kind, max(numbers) + 1 + margin + order.warmup), True
