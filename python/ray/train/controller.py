"""The state machine of a training run.

It does no I/O and reads no clock: an event and the time go in, actions come out (events.py). One
table says what each event does in each state; an event that has no entry there is out of date and
changes nothing. run.py carries the actions out.

    INITIALIZING ──▶ SCHEDULING ──▶ RUNNING ──▶ STOPPING ──▶ FINISHED
                       ▲   │  ▲        │ ▲         │ │ └───▶ ABORTED
                       │   │  │        ▼ │(drain)  │ └─────▶ ERRORED
                     PAUSING │       FAILING ──────┘
                       ▲     └─────────────────────┤
                       └───────────────────────────┘
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from ray.train import events as ev
from ray.train.errors import WorkerGroupStartupTimeoutError
from ray.train.ranks import named_ranks
from ray.train.report_book import ReportBook

# A group of elastic size waits for its resources for so many seconds before the nodes are asked how
# many workers are possible: the first time, and every later time, since nodes come and go.
ELASTIC_FIRST_LOOK_S, ELASTIC_LOOK_AGAIN_S = 1.0, 5.0
# The pause before a group that could not start is started again: the first one in seconds, doubled
# each time, up to the longest.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 30.0
# If nobody said when a drained node ends, it is taken to end after so many seconds.
UNKNOWN_DRAIN_S = 120.0


class State(enum.Enum):
    """Where a run is. The public status of a run is one of events.Show."""

    INITIALIZING = "INITIALIZING"
    SCHEDULING = "SCHEDULING"
    RUNNING = "RUNNING"
    # A rank failed, and the failures of other ranks are gathered.
    FAILING = "FAILING"
    STOPPING = "STOPPING"
    # The machine waits before another attempt to start a group.
    PAUSING = "PAUSING"
    FINISHED = "FINISHED"
    ERRORED = "ERRORED"
    ABORTED = "ABORTED"


_ENDED = (State.FINISHED, State.ERRORED, State.ABORTED)


@dataclass(frozen=True)
class Limits:
    """The user's limits of a run; times in seconds, -1 is no limit."""

    min_workers: int
    max_workers: int
    max_failures: int = 0
    controller_failure_limit: int = -1
    max_preemption_failures: int = -1
    start_timeout_s: float = 60.0
    # Failures of other ranks within so many seconds count as the same failure, because a broken
    # collective operation fails on all of its ranks one after another.
    failure_gather_s: float = 0.2
    resize_interval_s: float = 60.0
    preemption_grace_s: float = 0.0
    relax_on_preemption: bool = False

    @property
    def elastic(self) -> bool:
        return self.min_workers != self.max_workers


def _exceeds(count: int, limit: int) -> bool:
    return 0 <= limit < count


def _of(count: int, limit: int) -> str:
    return f"{count} (no limit)" if limit < 0 else f"{count} of {limit}"


class RunMachine:
    """Decides what happens in one run. `deadline` is the time at which it wants a Tick, or None."""

    def __init__(self, limits: Limits):
        self.limits = limits
        self.state = State.INITIALIZING
        self.attempt = 0
        self.size = 0
        self.deadline: float | None = None
        self.failures = self.preemptions = self.start_failures = 0
        self._give_up_at: float | None = None
        self._placed = False
        # The size of the next group; 0 stands for the largest number of workers.
        self._next_size = 0
        self._book: ReportBook | None = None
        self._finished: dict[int, bytes | None] = {}
        self._failed: dict[int, ev.WorkerFailure] = {}
        self._drained: dict[str, list[int]] = {}
        self._drain_end: float | None = None
        self._drain_deadline_ms: int | None = None
        # Set while the last group is being stopped.
        self._outcome: ev.Outcome | None = None
        # The length of the pause after the group was stopped.
        self._pause_s = 0.0

    def handle(self, event: Any, now: float) -> list[Any]:
        """Takes one event and returns the actions to be carried out. Events come in the order in
        which they happened."""
        if getattr(event, "attempt", self.attempt) != self.attempt:
            return []
        handler = _TABLE.get((self.state, type(event)))
        if handler is None:
            return []
        actions: list[Any] = []
        handler(self, event, now, actions.append)
        self.check_invariants()
        return actions

    def check_invariants(self) -> None:
        """Raises AssertionError when the machine contradicts itself."""
        running = self.state in (State.RUNNING, State.FAILING)
        assert not running or self.limits.min_workers <= self.size <= self.limits.max_workers
        assert not running or self._book is not None
        assert self.state is not State.FAILING or (self._failed and self.deadline is not None)
        assert self.state is not State.PAUSING or self.deadline is not None
        assert self.state not in _ENDED or self.deadline is None
        assert not set(self._failed) & set(self._finished)
        assert len(self._failed) + len(self._finished) <= max(self.size, 0)

    # ---- starting

    def _schedule(self, event, now, do) -> None:
        self.state = State.SCHEDULING
        self.attempt += 1
        self._placed, self._book = False, None
        self._finished, self._failed, self._drained = {}, {}, {}
        self._drain_end = self._drain_deadline_ms = None
        self._give_up_at = now + self.limits.start_timeout_s
        # A group of elastic size asks for the most workers. If there is no room at once, the nodes
        # are asked how many would fit. They are not asked before, because until then their
        # reports are too old.
        self.size, self._next_size = self._next_size or self.limits.max_workers, 0
        self._set_start_deadline(now + ELASTIC_FIRST_LOOK_S)
        do(ev.Show("SCHEDULING"))
        do(ev.StartGroup(self.attempt, self.size))

    def _set_start_deadline(self, look) -> None:
        self.deadline = min(self._give_up_at, look) if self.limits.elastic else self._give_up_at

    def _room_while_scheduling(self, event, now, do) -> None:
        # If there is too little room even for the fewest workers, a group of that size waits for
        # its resources.
        size = max(self.limits.min_workers, min(event.possible, self.limits.max_workers))
        if self._placed:
            return
        if size == self.size:
            self._set_start_deadline(now + ELASTIC_LOOK_AGAIN_S)
            return
        self._next_size = size
        self._stop(do, "RESIZING", f"room for {event.possible} workers now")

    def _group_placed(self, event, now, do) -> None:
        self._placed, self.deadline = True, None

    def _tick_while_scheduling(self, event, now, do) -> None:
        if self._placed:
            self.deadline = None
        elif now >= self._give_up_at:
            error = WorkerGroupStartupTimeoutError(self.size, self.limits.start_timeout_s)
            self._start_failed(ev.StartFailure(error, True, str(error)), do)
        else:
            self.deadline = None
            do(ev.MeasureRoom(self.attempt))

    def _group_failed(self, event, now, do) -> None:
        self._start_failed(event.failure, do)

    def _start_failed(self, failure: ev.StartFailure, do) -> None:
        self.start_failures += 1
        limit = self.limits.controller_failure_limit
        summary = failure.summary or str(failure.error)
        do(ev.ShowAttempt(self.attempt, "ERRORED", summary))
        if not failure.transient or _exceeds(self.start_failures, limit):
            do(ev.Say("warning", f"The worker group could not be started: {summary}"))
            self._outcome = ev.Outcome("ERRORED", error=failure.error)
            self._stop(do, "RESTARTING", summary)
            return
        # The pause is doubled up to its bound, which 0.1 s reaches after nine pauses.
        self._pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(self.start_failures - 1, 20))
        do(
            ev.Say(
                "warning",
                f"The worker group could not be started: {summary}. It is tried again "
                f"(start failure {_of(self.start_failures, limit)}).",
            )
        )
        self._stop(do, "RESTARTING", summary)

    def _group_started(self, event, now, do) -> None:
        self.state = State.RUNNING
        self._book = ReportBook(self.size)
        self._set_running_deadline(now)
        do(ev.Show("RUNNING"))
        do(ev.ShowAttempt(self.attempt, "RUNNING"))

    def _set_running_deadline(self, now) -> None:
        self.deadline = now + self.limits.resize_interval_s if self.limits.elastic else None

    # ---- running

    def _reported(self, event, now, do) -> None:
        for reports in self._book.add(event.rank, event.report):
            do(ev.Register(self.attempt, reports))

    def _worker_finished(self, event, now, do) -> None:
        # A process that had not answered the health check in time may go on and return, but its
        # rank counts as failed from then on.
        if event.rank in self._failed:
            return
        self._finished[event.rank] = event.value
        if len(self._finished) + len(self._failed) < self.size:
            return
        if self._failed:
            self._decide(event, now, do)
            return
        self._outcome = ev.Outcome("FINISHED", value=self._finished.get(0))
        do(ev.ShowAttempt(self.attempt, "FINISHED"))
        self._stop(do, "", "", orderly=True)

    def _worker_failed(self, event, now, do) -> None:
        # The function of the rank may have returned before its process died.
        self._finished.pop(event.rank, None)
        self._failed.setdefault(event.rank, event.failure)
        if self.state is State.RUNNING and not self._goes_on_without(event):
            self.state = State.FAILING
            self.deadline = now + self.limits.failure_gather_s
        if len(self._finished) + len(self._failed) == self.size:
            self._decide(event, now, do)

    def _goes_on_without(self, event) -> bool:
        """Returns whether a rank has gone with its drained node while the others may run on."""
        # Without rank 0 nobody can report.
        return (
            self.limits.preemption_grace_s > 0
            and event.failure.kind == ev.DIED
            and event.rank != 0
            and any(event.rank in ranks for ranks in self._drained.values())
        )

    def _decide(self, event, now, do) -> None:
        """Decides whether there is another attempt, once the failures of this one are known."""
        failures = dict(sorted(self._failed.items()))
        do(ev.TellFailures(failures))
        first = next(iter(self._failed))
        summary = f"rank {first}: {self._failed[first].summary}"
        do(ev.ShowAttempt(self.attempt, "ERRORED", summary))
        if self._drained:
            self._preempted(now, do, summary, failures, timed_out=False)
            return
        self.failures += 1
        limit = self.limits.max_failures
        again = not _exceeds(self.failures, limit)
        do(
            ev.Say(
                "warning",
                f"{len(failures)} of {self.size} workers failed ({summary}). "
                + (
                    f"The group is started again (worker failure {_of(self.failures, limit)})."
                    if again
                    else f"The run ends (worker failure {self.failures}, max_failures={limit})."
                ),
            )
        )
        if not again:
            self._outcome = ev.Outcome("ERRORED", failures=failures)
        self._stop(do, "RESTARTING", summary)

    def _tick_while_running(self, event, now, do) -> None:
        if self._drained:
            do(ev.ShowAttempt(self.attempt, "ERRORED", "a node of the group is drained"))
            self._preempted(now, do, "the deadline of a drained node has come", {}, timed_out=True)
        elif self.limits.elastic:
            self.deadline = None
            do(ev.MeasureRoom(self.attempt))
        else:
            self.deadline = None

    def _room_while_running(self, event, now, do) -> None:
        size = min(event.possible, self.limits.max_workers)
        if self._drained or self._finished:
            # The group ends soon, so that a restart would lose more than it brings.
            return
        if size == self.size or size < self.limits.min_workers:
            self._set_running_deadline(now)
            return
        self._next_size = size
        do(ev.Say("info", f"The group is resized from {self.size} to {size} workers."))
        do(ev.ShowAttempt(self.attempt, "FINISHED", f"resized to {size} workers"))
        self._stop(do, "RESIZING", f"from {self.size} to {size} workers")

    # ---- nodes that go away

    def _draining(self, event, now, do) -> None:
        self._drained.update(event.node_to_ranks)
        end = event.deadline if event.deadline is not None else now + UNKNOWN_DRAIN_S
        end += self.limits.preemption_grace_s
        self._drain_end = end = min(end, end if self._drain_end is None else self._drain_end)
        if self.state is State.RUNNING:
            self.deadline = end
        if event.deadline_ms is not None:
            earlier = self._drain_deadline_ms
            self._drain_deadline_ms = min(earlier or event.deadline_ms, event.deadline_ms)
        ranks = sorted(rank for ranks in self._drained.values() for rank in ranks)
        # Nothing is complete without rank 0, which says what a report is and where its files go.
        optional = ranks if self.limits.relax_on_preemption and 0 not in ranks else []
        for reports in self._book.relax(optional):
            do(ev.Register(self.attempt, reports))
        do(ev.TellDraining(self._drain_deadline_ms, dict(self._drained), optional))
        do(
            ev.Say(
                "warning",
                f"Nodes of {named_ranks(ranks)} are being drained; the group runs on "
                f"for {max(0.0, end - now):.0f} s at most.",
            )
        )

    def _preempted(self, now, do, summary, failures, timed_out) -> None:
        self.preemptions += 1
        limit = self.limits.max_preemption_failures
        if _exceeds(self.preemptions, limit):
            self._outcome = ev.Outcome(
                "ERRORED",
                failures=failures,
                drained=dict(self._drained),
                deadline_ms=self._drain_deadline_ms,
                drain_timed_out=timed_out,
            )
        do(
            ev.Say(
                "warning",
                f"The group was preempted ({summary}): preemption {_of(self.preemptions, limit)}.",
            )
        )
        self._stop(do, "RESTARTING", summary)

    # ---- stopping

    def _stop(self, do, status, detail, orderly=False) -> None:
        """Stops the group. _outcome says how the run ends afterwards; without it another attempt
        follows."""
        self.state, self.deadline = State.STOPPING, None
        if self._outcome is None:
            do(ev.Show(status, detail))
        do(ev.StopGroup(self.attempt, orderly))

    def _group_stopped(self, event, now, do) -> None:
        if self._outcome is not None:
            self._end(do)
        elif self._pause_s:
            self.state, self.deadline = State.PAUSING, now + self._pause_s
            self._pause_s = 0.0
        else:
            self._schedule(event, now, do)

    def _end(self, do) -> None:
        outcome = self._outcome
        self.state, self.deadline = State[outcome.status], None
        do(ev.Show(outcome.status))
        do(ev.End(outcome))

    def _abort(self, event, now, do) -> None:
        """Ends the run, even if it was about to end in another way."""
        had_outcome = self._outcome is not None
        self._outcome = ev.Outcome("ABORTED")
        if self.state in (State.INITIALIZING, State.PAUSING):
            self._end(do)
        elif self.state is not State.STOPPING:
            do(ev.ShowAttempt(self.attempt, "ABORTED"))
            self._stop(do, "", "")
        elif had_outcome:
            # A group whose functions have all returned may hang in its orderly end.
            do(ev.StopGroup(self.attempt, False))

    def _broke(self, event, now, do) -> None:
        if self._outcome is not None and self._outcome.status != "FINISHED":
            # The first reason is the one that counts.
            return
        self._outcome = ev.Outcome("ERRORED", error=event.error)
        if self.state in (State.INITIALIZING, State.PAUSING):
            self._end(do)
        elif self.state is not State.STOPPING:
            do(ev.ShowAttempt(self.attempt, "ERRORED", "the controller failed"))
            self._stop(do, "", "")


_M = RunMachine
_LIVING = tuple(state for state in State if state not in _ENDED)
_TABLE: dict[tuple[State, type], Any] = {
    (State.INITIALIZING, ev.Begin): _M._schedule,
    (State.SCHEDULING, ev.RoomMeasured): _M._room_while_scheduling,
    (State.SCHEDULING, ev.GroupPlaced): _M._group_placed,
    (State.SCHEDULING, ev.GroupStarted): _M._group_started,
    (State.SCHEDULING, ev.GroupFailed): _M._group_failed,
    (State.SCHEDULING, ev.Tick): _M._tick_while_scheduling,
    (State.RUNNING, ev.Reported): _M._reported,
    (State.RUNNING, ev.WorkerFinished): _M._worker_finished,
    (State.RUNNING, ev.WorkerFailed): _M._worker_failed,
    (State.RUNNING, ev.RoomMeasured): _M._room_while_running,
    (State.RUNNING, ev.NodeDraining): _M._draining,
    (State.RUNNING, ev.Tick): _M._tick_while_running,
    (State.FAILING, ev.Reported): _M._reported,
    (State.FAILING, ev.WorkerFinished): _M._worker_finished,
    (State.FAILING, ev.WorkerFailed): _M._worker_failed,
    (State.FAILING, ev.NodeDraining): _M._draining,
    (State.FAILING, ev.Tick): _M._decide,
    (State.STOPPING, ev.GroupStopped): _M._group_stopped,
    (State.PAUSING, ev.Tick): _M._schedule,
    **{(state, ev.Abort): _M._abort for state in _LIVING},
    **{(state, ev.ControllerBroke): _M._broke for state in _LIVING},
}
