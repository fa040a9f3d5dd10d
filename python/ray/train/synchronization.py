"""The meeting place of the ranks of one group: an asyncio actor without CPUs.

All collective calls of a group (barrier, broadcast, the agreement on a checkpoint's directory) are
one kind of meeting: everybody comes, and everybody leaves with what rank 0 brought.

Some meetings need not wait for the ranks of drained nodes (set_draining). Such a rank hears later
what it has missed, in the order of its own calls, so that it makes the same calls as the others and
its files still come into the directory that was agreed on.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import deque
from typing import Any, Callable

from ray.train.ranks import MOST_RANKS_SHOWN, named_ranks
from ray.train.session import DONE, FAILED, LATE, MISSED

logger = logging.getLogger("ray.train")

# So many of the last agreed directory names are kept, for the removal of unfinished ones.
_NAMES_KEPT = 256
# These calls complete without the ranks of drained nodes, if the run wants that.
_RELAXED = ("report", "get_preemption_info")
# So many meetings are kept for a rank that has missed them. A rank that is further behind waits for
# the end of its group.
_MISSED_KEPT = 10_000


class SynchronizationActor:
    """Lets the ranks of one attempt meet. It ends with the attempt.

    timeout_s: how long the first who comes waits for the last; None is for ever. warn_interval_s:
    how often a warning names the missing ranks meanwhile.
    """

    def __init__(self, world_size: int, timeout_s: float | None, warn_interval_s: float):
        self._size = world_size
        self._timeout_s = timeout_s
        self._warn_interval_s = warn_interval_s
        self._draining: tuple | None = None
        # Maps a rank that need not be waited for to the calls and answers of the meetings that it
        # has missed.
        self._missed: dict[int, deque[tuple[str, tuple]]] = {}
        # Ranks that have missed more meetings than are kept.
        self._lost: set[int] = set()
        # Ranks whose functions have returned and which make no more calls.
        self._returned: set[int] = set()
        self._names: deque[tuple[str, bool]] = deque(maxlen=_NAMES_KEPT)
        self._agreed = 0
        self._broken = ""
        self._tell: Callable[[dict | None], None] | None = None
        # Whether the controller has been told that ranks are missing.
        self._told = False
        self._clear()

    def _clear(self):
        self._present: dict[int, str] = {}
        self._value: Any = None
        self._uploads = False
        self._meeting: asyncio.Future | None = None
        self._timers: list[asyncio.TimerHandle] = []

    async def pid(self) -> int:
        """Returns the process id of the meeting place."""
        return os.getpid()

    async def meet(self, rank: int, call: str, value: Any = None, uploads: bool = False):
        """Waits for all ranks; returns (DONE, what rank 0 brought) or (FAILED or LATE, a text).

        For a rank that was not waited for it is (MISSED, what rank 0 brought).

        call: the name of the function that the user called, which must be the same on all ranks.
        uploads: this rank will copy files into the directory that is agreed on here.
        """
        if self._broken:
            return FAILED, self._broken
        if rank in self._lost:
            # An error would end the other ranks, too.
            await asyncio.Future()
        if self._missed.get(rank):
            return self._late_answer(rank, call)
        if self._meeting is None:
            self._open()
        meeting = self._meeting
        self._present[rank] = call
        self._uploads = self._uploads or uploads
        if rank == 0:
            self._value = value
        self._end_if_complete()
        self._end_if_hopeless()
        return await meeting

    async def returned(self, rank: int) -> None:
        """Notes that the function of this rank has returned, so that nobody need wait for it any
        more."""
        self._returned.add(rank)
        self._end_if_hopeless()

    def _end_if_hopeless(self) -> None:
        """Ends the present meeting if one of its missing ranks will not come."""
        if self._meeting is None:
            return
        is_relaxed = set(self._present.values()) <= set(_RELAXED)
        gone = [
            rank
            for rank in self._missing_ranks()
            if rank in self._returned and not (is_relaxed and rank in self._missed)
        ]
        if not gone:
            return
        _, waiting = self._missing()
        self._broken = (
            f"The function of {named_ranks(gone)} has returned while others wait: {waiting}. All "
            "ranks must make the same calls of report() and of ray.train.collective, equally often."
        )
        meeting = self._meeting
        self._close()
        meeting.set_result((FAILED, self._broken))

    def _late_answer(self, rank: int, call: str):
        """Returns the answer for a meeting that this rank has missed, or an error if it makes
        another call."""
        expected, (word, value) = self._missed[rank].popleft()
        if call == expected:
            return (MISSED if word == DONE else word), value
        return FAILED, (
            f"Rank {rank}, whose node is being drained, called {call}() where the other ranks have "
            f"called {expected}(). All ranks must make the same calls in the same order."
        )

    def _end_if_complete(self) -> None:
        if self._meeting is None or not self._is_complete():
            return
        meeting, absent = self._meeting, self._missing_ranks()
        call = self._present[0]
        answer = self._answer(call)
        self._close()
        for rank in absent:
            missed = self._missed[rank]
            missed.append((call, answer))
            if len(missed) > _MISSED_KEPT:
                missed.clear()
                self._lost.add(rank)
        meeting.set_result(answer)

    def _is_complete(self) -> bool:
        if len(self._present) == self._size:
            return True
        needed = [rank for rank in range(self._size) if rank not in self._missed]
        if not all(rank in self._present for rank in needed):
            return False
        calls = {self._present[rank] for rank in needed}
        return len(calls) > 1 or calls <= set(_RELAXED)

    def _answer(self, call: str):
        if len(set(self._present.values())) > 1:
            by_call: dict[str, list[int]] = {}
            for rank, name in sorted(self._present.items()):
                by_call.setdefault(name, []).append(rank)
            called = "; ".join(
                f"{name}() by {named_ranks(ranks)}" for name, ranks in by_call.items()
            )
            # Later meetings would mix calls that do not belong together.
            self._broken = (
                "All ranks must make the same calls that wait for each other in the same order, "
                f"but these were made at the same time: {called}."
            )
            return FAILED, self._broken
        if call == "get_preemption_info":
            return DONE, self._draining
        if call == "report":
            self._agreed += 1
            self._names.append((self._value, self._uploads))
        return DONE, self._value

    def _open(self):
        loop = asyncio.get_running_loop()
        self._meeting = loop.create_future()
        began = loop.time()
        self._timers = [loop.call_later(self._warn_interval_s, self._warn, began)]
        if self._timeout_s is not None:
            self._timers.append(loop.call_later(self._timeout_s, self._give_up))

    def _close(self):
        for timer in self._timers:
            timer.cancel()
        if self._told:
            self._told = False
            self._tell(None)
        self._clear()

    def _missing_ranks(self) -> list[int]:
        return [rank for rank in range(self._size) if rank not in self._present]

    def _missing(self) -> tuple[str, str]:
        missing = named_ranks(self._missing_ranks())
        waiting = "; ".join(
            f"rank {rank} in {call}()"
            for rank, call in sorted(self._present.items())[:MOST_RANKS_SHOWN]
        )
        return missing, waiting

    def _warn(self, began: float):
        missing, waiting = self._missing()
        loop = asyncio.get_running_loop()
        logger.warning(
            "Ranks have been waiting for %.0f s for %s, which have not come (%s). All ranks "
            "must make the same calls of report() and of ray.train.collective. `rayctl train show` "
            "says where each rank is.",
            loop.time() - began,
            missing,
            waiting,
        )
        if self._tell is not None:
            since = time.time_ns() - int((loop.time() - began) * 1e9)
            missing_ranks = self._missing_ranks()[:MOST_RANKS_SHOWN]
            present = sorted(self._present.items())[:MOST_RANKS_SHOWN]
            calls = {str(rank): call for rank, call in present}
            self._told = True
            self._tell({"since_time_ns": since, "missing_ranks": missing_ranks, "calls": calls})
        self._timers[0] = loop.call_later(self._warn_interval_s, self._warn, began)

    def _give_up(self):
        missing, waiting = self._missing()
        text = (
            f"{missing.capitalize()} did not come within {self._timeout_s:g} s "
            f"(RAY_TRAIN_COLLECTIVE_TIMEOUT_S); waiting: {waiting}."
        )
        meeting = self._meeting
        self._close()
        # A rank that came late would wait for those that have just left.
        self._broken = text
        meeting.set_result((LATE, text))

    async def tell_of_missing(self, controller: Any, attempt: int) -> None:
        """Tells the controller from now on when ranks wait for others as long as for a warning."""
        # Nobody waits for the controller's answer, because it may have ended.
        self._tell = lambda waiting: controller.ranks_missing.remote(attempt, waiting)

    async def set_draining(
        self, deadline_ms: int | None, node_to_ranks: dict, optional: list[int]
    ) -> None:
        """Sets the answer of get_preemption_info() from now on.

        optional: ranks, never rank 0, without which report() and get_preemption_info() complete
        from now on, a meeting that is under way included.
        """
        self._draining = (deadline_ms, node_to_ranks)
        for rank in optional:
            self._missed.setdefault(rank, deque())
        self._end_if_complete()

    async def agreed_after(self, count: int) -> list[str]:
        """The directory names agreed on in reports after the first `count`, if files go there.

        All of them that are kept when some ranks need not be waited for: these may have uploaded,
        or be uploading, to a directory whose report is long complete.
        """
        if self._missed:
            return [name for name, _ in self._names if name]
        skipped = count - (self._agreed - len(self._names))
        return [name for name, uploads in list(self._names)[max(0, skipped) :] if uploads]
