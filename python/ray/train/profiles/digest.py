"""Reads one rank's trace, in a process of its own beside the worker.

Parsing a trace takes seconds in which a thread of the worker would hold the interpreter's lock, and
the training would wait. The worker starts this process, and it ends with the worker.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from typing import Any

import ray
from ray.train.profiles import fragment, memory, shares
from ray.train.profiles.traces import Trace

# After so many seconds a digest is given up.
_TIMEOUT_S = 300.0
# The process yields to those that train.
_NICENESS = 10
# Names of the run's spans. In the first ones a rank waits for the others, then for batches, and the
# last one is the time in report().
WAITS, DATA, REPORT = ("report: wait for ranks", "collective"), "data loader", "report"
_SET_DEATH_SIGNAL = 1


def digest(order: dict) -> dict:
    """Divides the time of a rank's steps, and writes its fragment of the merged trace.

    order: rank, label, trace (path), fragment (path to be written), memory (path of torch's
    timeline, or None), origin_ns, spans (see fragment.run_events) and boundaries, the steps as the
    recorder saw them: [number, begin in ns, end in ns].
    Returns steps (each with its number, its shares and its costliest operators), top (operators of
    all steps), distributed, memory (points) and notes.
    """
    origin_ns = order["origin_ns"]
    trace = Trace(order["trace"], origin_ns)
    made = fragment.Fragment(order["rank"], order["label"])
    operators, device = trace.operators(), trace.device_work()
    spans = order["spans"]
    own = {
        name: [_interval(span, origin_ns) for span in spans if span[0] == name and span[3]]
        for name in (*WAITS, DATA, REPORT)
    }
    work = shares.work_of(
        operators,
        trace.collectives(),
        device,
        [interval for name in WAITS for interval in own[name]],
        [*own[DATA], *((event.begin, event.end) for event in trace.loading())],
        own[REPORT],
    )
    windows = trace.steps(
        {
            number: ((begin - origin_ns) / 1000, (end - origin_ns) / 1000)
            for number, begin, end in order["boundaries"]
        }
    )
    counted = [*(device or operators), *work.beside]
    costs = [*work.pieces, *work.beside]
    in_order = sorted(windows.items(), key=lambda item: item[1])
    of_steps = [window for _, window in in_order]
    steps = [
        {
            "step": number,
            **shares.shares(work, window),
            "operators": shares.costliest(pieces, began, window),
        }
        for (number, window), pieces, began in zip(
            in_order, shares.dealt(costs, of_steps), shares.dealt(counted, of_steps)
        )
    ]
    begin = min((window[0] for window in windows.values()), default=0.0)
    end = max((window[1] for window in windows.values()), default=0.0)
    points = memory.points(order.get("memory"), trace, origin_ns)
    notes = []
    if not operators and not device:
        notes.append(f"The trace of rank {order['rank']} has no operators of torch.")
    top = shares.costliest(costs, counted, (begin, end))
    if operators:
        process = operators[0].thread[0]
        made.adopt(process)
    events = made.events(trace, work.beside, fragment.run_events(order["rank"], spans, origin_ns))
    fragment.write(events, order["fragment"])
    return {
        "steps": steps,
        "operators": top,
        "distributed": trace.distributed,
        "begin_us": begin,
        "memory": points,
        "notes": notes + made.notes(),
    }


def empty(note: str) -> dict:
    """Returns the digest of a trace that says nothing, with a sentence about why."""
    return {
        "steps": [],
        "operators": [],
        "distributed": {},
        "begin_us": 0.0,
        "memory": None,
        "notes": [note],
    }


def _interval(span: list, origin_ns: int) -> tuple[float, float]:
    _, begin_ns, duration_ns, _ = span
    return (begin_ns - origin_ns) / 1000, (begin_ns - origin_ns + duration_ns) / 1000


# ---- the process


def in_a_process(order: dict) -> dict[str, Any]:
    """Computes digest(order) in a process of its own. Raises RuntimeError if that fails."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(ray.__file__)))
    # The module path of the child lacks the working directory, in which the user may have a module
    # of any name.
    code = "import sys; sys.path[0] = sys.argv[1]; from ray.train.profiles import digest; "
    done = subprocess.run(
        [sys.executable, "-c", code + "digest.main()", root, str(os.getpid())],
        input=json.dumps(order).encode(),
        capture_output=True,
        timeout=_TIMEOUT_S,
        cwd="/",
    )
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise RuntimeError(lines[-1] if lines else f"it ended with status {done.returncode}")
    return json.loads(done.stdout)


def main() -> None:
    """Reads the order from standard input and writes the digest to standard output."""
    _end_with(int(sys.argv[2]))
    os.nice(_NICENESS)
    json.dump(digest(json.load(sys.stdin)), sys.stdout)


def _end_with(parent: int) -> None:
    """Lets the kernel end this process with the one that started it."""
    ctypes.CDLL(None, use_errno=True).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        # The starter has ended already.
        sys.exit(1)
