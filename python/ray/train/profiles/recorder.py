"""Records the profiles of one rank. The controller arms a recording, and the training thread
carries it out."""

from __future__ import annotations

import logging
import sys
import threading
import time
from typing import Any

from ray.train.profiles import foreign, profiler
from ray.train.profiles.files import RankFiles
from ray.train.profiles.order import FAILED, RECORDED, Order
from ray.train.profiles.steps import KINDS, MEANING, Steps

logger = logging.getLogger("ray.train")

# The end of a function waits so many seconds until its profile is written.
_WRITE_S = 300.0


class Recording:
    """One profile. Its states are

        armed ──▶ profiling (warm-up, then recording) ──▶ writing ──▶ done

    at_step() and the end run in the training thread, and never raise; other methods may be called
    by any thread.
    """

    def __init__(self, order: Order, session: Any):
        self.order = order
        self._session = session
        self._steps: Steps = session.steps
        self._kind = order.kind
        # None until it is known.
        self._begin = order.begin
        self._number = 0
        self._profiler: profiler.TorchProfiler | None = None
        self._boundaries: list[list[int]] = []
        # Another thread sets this to the reason for which the training thread is to end the
        # recording.
        self._refused = ""
        # When the last step began, or the recording was made.
        self._last = time.monotonic()
        self._changed = threading.Condition()
        self._is_writing = False
        self._result: dict | None = None

    # ---- from any thread

    @property
    def is_armed(self) -> bool:
        """Tells whether the profiler has not started yet and still may."""
        return self._profiler is None and self._result is None

    @property
    def is_done(self) -> bool:
        return self._result is not None

    @property
    def first(self) -> int | None:
        """Returns the number of the step at which the profiler starts, or None if it is not
        known."""
        return None if self._begin is None else self._begin - self.order.warmup

    def refuse(self, detail: str) -> None:
        """Ends the recording without a trace: now, or with the next step if the profiler has
        started."""
        with self._changed:
            if self.is_armed:
                self._finish({"status": FAILED, "detail": detail})
            elif not self._is_writing:
                self._refused = detail

    def wait(self) -> dict:
        """Waits for the result. If the rank makes no step for timeout_s, the result has "stuck" in
        it."""
        limit = self.order.timeout_s
        with self._changed:
            while self._result is None:
                left = None
                if limit is not None and not self._is_writing:
                    left = self._last + limit - time.monotonic()
                    if left <= 0:
                        detail = f"it made no step for {limit:g} s ({MEANING})"
                        if self.is_armed:
                            self._finish({"status": FAILED, "detail": detail, "stuck": True})
                            continue
                        self._refused = detail
                        return {"status": FAILED, "detail": detail, "stuck": True}
                self._changed.wait(left)
            return self._result

    def wait_until_done(self, timeout_s: float) -> bool:
        """Waits until nothing of the recording is under way; returns whether that is so."""
        with self._changed:
            return self._changed.wait_for(lambda: self._result is not None, timeout_s)

    def _finish(self, result: dict) -> None:
        """Sets the result unless there is one. The caller holds the lock."""
        if self._result is None:
            self._result = result
            if self._steps.recorder is self:
                self._steps.recorder = None
            self._changed.notify_all()

    # ---- in the training thread

    def at_step(self, kind: str) -> None:
        """Notes that a step of this kind begins."""
        with self._changed:
            if self._result is not None or self._is_writing:
                return
            try:
                self._at_step(kind)
            except Exception as error:
                logger.debug("A profile failed.", exc_info=True)
                self._give_up(f"torch.profiler failed: {type(error).__name__}: {error}")

    def _at_step(self, kind: str) -> None:
        self._last = time.monotonic()
        if self._refused:
            self._give_up(self._refused)
            return
        if self.order.kind is None and self._profiler is None:
            # If the order names no kind, it is the finest kind that the function has used so far.
            if self._kind is None or KINDS.index(kind) < KINDS.index(self._kind):
                self._kind = kind
        if kind != self._kind:
            return
        self._number = number = self._steps.counts()[kind]
        if self._begin is None or (self.order.kind is None and number > self.first):
            if self._profiler is None:
                self._begin = number + self.order.warmup
        if self._profiler is None:
            if number == self.first:
                self._start(number)
            return
        if number == self._begin + self.order.steps:
            self._stop(None)
            return
        self._profiler.step(number)
        self._mark(number)

    def _start(self, number: int) -> None:
        foreign.install(self._steps)
        problem = profiler.missing()
        if problem is None and _is_occupied():
            problem = (
                "the function's own torch.profiler is active, and a process can have one at a "
                "time. Ask again when it has ended, or take it out of the function"
            )
        if problem is not None:
            self._give_up(problem)
            return
        foreign.on_foreign_profiler_start(self._make_way)
        self._profiler = profiler.TorchProfiler(self.order, number, self._begin)
        self._mark(number)

    def _mark(self, number: int) -> None:
        now = time.time_ns()
        if self._boundaries:
            self._boundaries[-1][2] = now
        if self._profiler.is_recording:
            if not self._boundaries:
                self._session.times.spans = []
            self._boundaries.append([number, now, now])

    def _stop(self, detail: str | None) -> None:
        """Ends the recording and has it written in the background."""
        self._boundaries[-1][2] = time.time_ns()
        spans, self._session.times.spans = self._session.times.spans or [], None
        foreign.on_foreign_profiler_start(None)
        self._profiler.stop()
        self._is_writing = True
        self._steps.recorder = None
        threading.Thread(
            target=self._write, args=(spans, detail), name="ray-train-profile", daemon=True
        ).start()

    def _give_up(self, detail: str) -> None:
        """Ends the recording without a trace."""
        self._session.times.spans = None
        foreign.on_foreign_profiler_start(None)
        if self._profiler is not None:
            try:
                self._profiler.stop()
            except Exception:
                logger.debug("A profiler could not be stopped.", exc_info=True)
        self._finish({"status": FAILED, "detail": detail})

    def _make_way(self) -> None:
        """Ends the recording because the function's own profiler is about to start."""
        if threading.get_ident() == self._steps.thread:
            with self._changed:
                self._end_early("the function's own torch.profiler started", 0)

    def close(self, is_success: bool) -> None:
        """Notes that the function has ended. If it has returned, waits for the trace."""
        with self._changed:
            if not is_success:
                # The process is killed in a moment, and whoever waits for the error has priority.
                self._finish({"status": FAILED, "detail": "the function raised an exception"})
                return
            self._end_early("the function ended", 1)
        if not self.wait_until_done(_WRITE_S):
            logger.warning("The profile %s was not written within %g s.", self.order.id, _WRITE_S)

    def _end_early(self, reason: str, current: int) -> None:
        """`current` is 1 if the step under way counts as recorded, else 0."""
        if self._result is not None or self._is_writing:
            return
        try:
            steps = self._number - (self._begin or 0) + current
            if self._profiler is None or steps < 1 or self._refused:
                when = f"before step {self._begin}" if self._begin else "before its first step"
                self._give_up(self._refused or f"{reason} {when} was recorded")
            elif steps < self.order.steps:
                self._stop(f"{reason} after {steps} of {self.order.steps} steps")
            else:
                self._stop(None)
        except Exception as error:
            self._give_up(f"torch.profiler failed: {type(error).__name__}: {error}")

    # ---- in the background

    def _write(self, spans: list, detail: str | None) -> None:
        try:
            files = RankFiles(self.order, self._session)
            result = {"status": RECORDED, "detail": detail}
            result.update(files.write(self._profiler, self._own_spans(spans), self._boundaries))
            result["kind"], result["begin"] = self._kind, self._begin
        except Exception as error:
            logger.debug("A profile could not be written.", exc_info=True)
            text = f"its trace could not be written: {type(error).__name__}: {error}"
            result = {"status": FAILED, "detail": text}
        with self._changed:
            # The recording takes much memory.
            self._profiler = None
            self._finish(result)

    def _own_spans(self, spans: list) -> list[list]:
        return [
            [name, end_ns - int(seconds * 1e9), int(seconds * 1e9), thread == self._steps.thread]
            for name, end_ns, seconds, thread in spans
        ]


def _is_occupied() -> bool:
    """Returns whether another profiler is active in this thread."""
    enabled = getattr(sys.modules["torch"].autograd, "_profiler_enabled", None)
    return foreign.is_active() or (enabled is not None and bool(enabled()))


def _has_begun(order: Order, counts: dict[str, int]) -> bool:
    """Returns whether a step came that makes it too late for the order."""
    if order.begin is None:
        return False
    if order.kind is None:
        return any(counts.values())
    return counts[order.kind] >= order.begin - order.warmup


class Recorder:
    """The profiles of one rank, one at a time. The controller calls everything but close()."""

    def __init__(self, session: Any, has_ended: bool = False):
        """`has_ended` says whether the function ended before anybody asked for a profile."""
        self._session = session
        self._recording: Recording | None = None
        self._has_ended = has_ended

    def look(self) -> dict:
        """Returns the counts of steps by kind, and why nothing can be recorded, or None."""
        return {"counts": self._session.steps.counts(), "problem": self._problem()}

    def _problem(self) -> str | None:
        if self._has_ended:
            return "its function has ended"
        if self._recording is not None and not self._recording.is_done:
            return "another profile is under way"
        return None

    def arm(self, order: Order) -> dict:
        """Has the order's steps recorded. Returns the counts of steps, and whether it is not too
        late."""
        problem = self._problem()
        if problem is not None:
            return {"counts": self._session.steps.counts(), "problem": problem, "armed": False}
        steps = self._session.steps
        foreign.install(steps)
        self._recording = recording = Recording(order, self._session)
        steps.recorder = recording
        # The steps are counted after the recording is set: a step that begins meanwhile is either
        # counted here or has called at_step().
        counts = steps.counts()
        armed = True
        if self._has_ended:
            recording.refuse("its function has ended")
        elif recording.is_armed and _has_begun(order, counts):
            recording.refuse("the step had begun already")
            armed = False
        return {"counts": counts, "problem": None, "armed": armed}

    def cancel(self, profile_id: str, detail: str, timeout_s: float) -> bool:
        """Ends a profile without a trace; returns whether nothing of it is under way any more."""
        recording = self._recording
        if recording is None or recording.order.id != profile_id:
            return True
        recording.refuse(detail)
        return recording.wait_until_done(timeout_s)

    def result(self, profile_id: str) -> dict:
        """Waits for the result of a profile and returns it. It can be taken once."""
        recording = self._recording
        if recording is None or recording.order.id != profile_id:
            return {"status": FAILED, "detail": "it does not know the profile"}
        result = recording.wait()
        if recording.is_done:
            # The traces in it need not be kept here.
            self._recording = None
        return result

    def close(self, is_success: bool) -> None:
        """Notes in the function's thread that it has ended."""
        self._has_ended = True
        recording = self._recording
        if recording is not None:
            recording.close(is_success)
