"""Makes one profile of what the ranks have recorded: its files, its record, its answer."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from ray.train.filesystem import operations
from ray.train.profiles import files, fragment, store, words
from ray.train.profiles.merge import merge
from ray.train.profiles.order import RECORDED, Order
from ray.train.profiles.steps import BATCH, OWN, REPORT

# The number of the controller's process in the merged trace.
_CONTROLLER_PID = 1
# The start of the group is drawn if it was within so many seconds before the first recorded step. A
# start that was hours ago would make the steps too small to be seen.
_SHOWN_START_S = 120.0
# The record has the memory of so many ranks, and so many steps of each rank.
_MOST_MEMORIES, _MOST_STEPS = 16, 100
_KINDS = {BATCH: "batches", OWN: "calls of prof.step()", REPORT: "reports"}


@dataclass
class Parts:
    """Everything of which a profile is made.

    by_rank: the results of the ranks (recorder.py). phases: of the group's start: (name, begin,
    end) in nanoseconds since the epoch.
    """

    spec: Any
    order: Order
    record: dict
    workers: dict[int, Any]
    by_rank: dict[int, dict]
    notes: list[str]
    phases: list[tuple[str, int, int]]


def assemble(parts: Parts) -> dict:
    """Completes the record, writes the files and returns the answer. It blocks, so it runs in a
    thread."""
    record, folder = parts.record, parts.order.directory
    record["ranks"] = [_rank(parts, rank) for rank in sorted(parts.by_rank)]
    recorded = {
        rank: one for rank, one in sorted(parts.by_rank.items()) if one["status"] == RECORDED
    }
    storage = operations(parts.spec.storage.storage_filesystem)
    text = ""
    if recorded:
        record["summary"] = _summary(parts, recorded)
        memories = {rank: one["digest"]["memory"] for rank, one in recorded.items()}
        text = words.text(record)
        with files.unfinished_files(storage, folder, "merged") as place:
            trace = os.path.join(place, files.MERGED)
            _merge(parts, recorded, trace)
            record["trace"] = f"{folder}/{files.MERGED}"
            record["log_file"] = store.keep_trace(parts.spec.run_id, record["id"], trace)
            _write_text(os.path.join(place, files.SUMMARY_TEXT), text)
            complete = {**record, "memory": memories}
            _write_text(os.path.join(place, files.SUMMARY_JSON), json.dumps(complete, indent=1))
        record["memory"] = {
            str(rank): points for rank, points in list(memories.items())[:_MOST_MEMORIES] if points
        }
        for rank in record["summary"]["ranks"]:
            rank["steps"] = rank["steps"][:_MOST_STEPS]
    files.remove_unfinished(storage, folder)
    return {
        "id": record["id"],
        "path": folder,
        "trace": record["trace"],
        "summary": text,
        "ranks": record["ranks"],
    }


def _write_text(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _rank(parts: Parts, rank: int) -> dict:
    one, info = parts.by_rank[rank], parts.workers.get(rank)
    return {
        "rank": rank,
        "node_id": info.node_id if info else None,
        "pid": info.pid if info else None,
        "status": one["status"],
        "detail": one.get("detail"),
        "trace": one.get("trace"),
        "memory": one.get("memory"),
    }


def _summary(parts: Parts, recorded: dict[int, dict]) -> dict:
    numbers = sorted({step["step"] for one in recorded.values() for step in one["digest"]["steps"]})
    kinds = sorted({_KINDS[one["kind"]] for one in recorded.values()})
    if not numbers:
        steps = "no complete step"
    elif len(numbers) == 1:
        steps = f"step {numbers[0]}"
    else:
        steps = f"steps {numbers[0]} to {numbers[-1]}"
    notes = list(parts.notes)
    for one in recorded.values():
        notes.extend(note for note in one["digest"]["notes"] if note not in notes)
    ranks = {rank: one["digest"]["steps"] for rank, one in recorded.items()}
    return {
        "what": f"{steps} ({' and '.join(kinds)}) of run {parts.spec.name} on "
        + (f"{len(recorded)} ranks" if len(recorded) > 1 else f"rank {next(iter(recorded))}"),
        "ranks": [
            {
                "rank": rank,
                "node": parts.workers[rank].node_ip,
                "pid": parts.workers[rank].pid,
                "steps": one["digest"]["steps"],
                "operators": one["digest"]["operators"],
            }
            for rank, one in recorded.items()
        ],
        "notes": [*words.notes(ranks), *notes],
    }


def _merge(parts: Parts, recorded: dict[int, dict], path: str) -> None:
    first_us = min(one["digest"]["begin_us"] for one in recorded.values())
    facts = {
        "baseTimeNanoseconds": parts.order.origin_ns,
        "ray_train": {
            "run_id": parts.spec.run_id,
            "run_name": parts.spec.name,
            "profile": parts.order.id,
            "ranks": sorted(recorded),
        },
    }
    fragments = (one.pop("fragment") for one in recorded.values())
    merge(fragments, _start_events(parts, first_us), facts, path)


def _start_events(parts: Parts, first_us: float) -> list[dict]:
    """Returns the start of the group as events of a process of its own, if it was shortly before
    the steps."""
    origin_ns = parts.order.origin_ns
    events = [
        {
            "ph": "X",
            "cat": "ray.train",
            "name": name,
            "pid": _CONTROLLER_PID,
            "tid": 0,
            "ts": (begin - origin_ns) / 1000,
            "dur": (end - begin) / 1000,
        }
        for name, begin, end in parts.phases
        if first_us - (begin - origin_ns) / 1000 < _SHOWN_START_S * 1e6
    ]
    if not events:
        return []
    return [
        fragment.named(_CONTROLLER_PID, "process_name", name="controller of the run"),
        fragment.named(_CONTROLLER_PID, "process_sort_index", sort_index=-1),
        fragment.named(_CONTROLLER_PID, "thread_name", name="start of the group"),
        *events,
    ]
