"""The summary of a profile as text, for a terminal, and its conclusions as sentences."""

from __future__ import annotations

from statistics import mean, median
from typing import Any

from ray.train.profiles.order import RECORDED

# The parts of a step with the words for them.
PARTS = (
    ("compute_us", "compute"),
    ("communication_us", "communication"),
    ("data_us", "data loading"),
    ("idle_us", "idle"),
)
# The reasons for which a rank may be slow.
_SLOWNESS = (
    ("compute_us", "computes for"),
    ("data_us", "waits for data for"),
    ("idle_us", "is idle for"),
)
# The parts that may cost much, in words for one rank and for several.
_COSTS = (
    (
        "data_us",
        "waits {time} of a step for data: more workers of its DataLoader may help",
        "wait {time} of a step for data: more workers of their DataLoaders may help",
    ),
    (
        "communication_us",
        "is in communication, or waits for others there, for {time} of a step",
        "are in communication, or wait for others there, for {time} of a step",
    ),
    (
        "idle_us",
        "is idle for {time} of a step: no operator runs, only Python or a wait",
        "are idle for {time} of a step: no operator runs, only Python or a wait",
    ),
    (
        "report_us",
        "is in report() for {time} of a step",
        "are in report() for {time} of a step",
    ),
)
# A rank is called slow if it computes or loads longer than the median of all by this share of a
# step.
_SLOW_SHARE = 0.15
# A part is worth a sentence if it has at least this share of the step.
_LARGE_SHARE = 0.3
# The text names so many operators, and shows so many steps of a rank.
_OPERATORS, _STEPS = 8, 20
_NAME_CHARACTERS = 60


def averages(steps: list[dict]) -> dict[str, float]:
    """Returns the mean of each part over the steps of a rank."""
    names = [name for name, _ in PARTS] + ["report_us", "total_us"]
    return {name: round(mean(step[name] for step in steps), 3) for name in names}


def notes(ranks: dict[int, list[dict]]) -> list[str]:
    """Draws conclusions from the steps of all ranks: which rank is slow, and what costs much."""
    means = {rank: averages(steps) for rank, steps in ranks.items() if steps}
    if not means:
        return []
    slow = _slow_ranks(means)
    # A slow rank explains why the others wait, so of the other parts only data and reports are
    # mentioned.
    return [*slow, *_large_parts(means, ("data_us", "report_us") if slow else ())]


def _slow_ranks(means: dict[int, dict]) -> list[str]:
    found = []
    total = median(one["total_us"] for one in means.values())
    if len(means) < 2 or total <= 0:
        return []
    for rank, one in means.items():
        others = [other for key, other in means.items() if key != rank]

        def usual(name: str) -> float:
            return median(other[name] for other in others)

        causes = [
            f"{word} {_time(one[name])} a step (the others {_time(usual(name))})"
            for name, word in _SLOWNESS
            if one[name] - usual(name) > _SLOW_SHARE * total
        ]
        waits = [
            f"{_time(usual(name))} {word}"
            for name, word in (("communication_us", "in communication"), ("idle_us", "idle"))
            if usual(name) - one[name] > _SLOW_SHARE * total
        ]
        # The other ranks wait for this one, and it waits for nobody.
        if causes and waits:
            found.append(
                f"Rank {rank} is slow: it {' and '.join(causes)}. The others are meanwhile "
                f"{' and '.join(waits)}."
            )
    return found


def _large_parts(means: dict[int, dict], only: tuple[str, ...]) -> list[str]:
    found = []
    for name, one, several in _COSTS:
        if only and name not in only:
            continue
        ranks = [
            rank
            for rank, parts in means.items()
            if parts["total_us"] > 0 and parts[name] > _LARGE_SHARE * parts["total_us"]
        ]
        if ranks:
            time = _time(mean(means[rank][name] for rank in ranks))
            who = "Rank" if len(ranks) == 1 else "Ranks"
            sentence = (one if len(ranks) == 1 else several).format(time=time)
            found.append(f"{who} {', '.join(map(str, ranks))} {sentence}.")
    return found


def text(record: dict[str, Any]) -> str:
    """Returns the whole summary of a record (coordinator.py), ready to be printed."""
    summary = record["summary"]
    lines = [f"Profile {record['id']}: {summary['what']}."]
    for rank in summary["ranks"]:
        lines.append("")
        lines.extend(_rank(rank))
    sentences = summary["notes"]
    if sentences:
        lines.append("")
        lines.extend(sentences)
    for rank in record["ranks"]:
        if rank["status"] != RECORDED:
            lines.append(f"Rank {rank['rank']} was not recorded: {rank['detail']}.")
        elif rank["detail"]:
            lines.append(f"Rank {rank['rank']}: {rank['detail']}.")
    return "\n".join(lines) + "\n"


def _rank(rank: dict) -> list[str]:
    if not rank["steps"]:
        return [f"Rank {rank['rank']}: no step is in its trace."]
    heads = ["step", "total", *(word for _, word in PARTS)]
    rows = [heads]
    for step in rank["steps"][:_STEPS]:
        rows.append([str(step["step"]), *_row(step)])
    if len(rank["steps"]) > _STEPS:
        rows.append(["…", *[""] * (len(heads) - 1)])
    if len(rank["steps"]) > 1:
        rows.append(["mean", *_row(averages(rank["steps"]))])
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    lines = [f"Rank {rank['rank']} ({rank['node']}, pid {rank['pid']})"]
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row, widths)]
        lines.append(("  " + "  ".join(cells)).rstrip())
    if rank["operators"]:
        lines.append("  the operators that cost most, without those that they call:")
    for one in rank["operators"][:_OPERATORS]:
        lines.append(
            f"  {_time(one['total_us']):>10}  {one['count']:>6} x  {one['name'][:_NAME_CHARACTERS]}"
        )
    return lines


def _row(step: dict) -> list[str]:
    total = step["total_us"] or 1.0
    return [
        _time(step["total_us"]),
        *(f"{_time(step[name])} {100 * step[name] / total:3.0f} %" for name, _ in PARTS),
    ]


def _time(microseconds: float) -> str:
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.2f} s"
    if microseconds >= 1e3:
        return f"{microseconds / 1e3:.1f} ms"
    return f"{microseconds:.0f} us"
