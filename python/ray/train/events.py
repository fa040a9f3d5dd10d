"""The words that the state machine of a run understands (events) and speaks (actions).

Every event of a group carries the number of its attempt; those of an attempt that is over are
ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ray.train.reported import TrainingReport


class Word:
    """A value with the fields that its class annotates; equal to one of the same class and fields.

    Making thirty dataclasses takes 25 ms, which every run would wait for; these take one.
    """

    _names: tuple[str, ...] = ()

    def __init_subclass__(cls):
        cls._names = tuple(cls.__annotations__) if "__annotations__" in cls.__dict__ else ()

    def __init__(self, *values: Any, **named: Any):
        named.update(zip(self._names, values))
        self.__dict__.update(named)
        unknown = named.keys() - set(self._names)
        lacking = [name for name in self._names if not hasattr(self, name)]
        if unknown or lacking or len(values) > len(self._names):
            raise TypeError(f"{type(self).__name__}: fields are {self._names}, got {named}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._values() == other._values()

    __hash__ = None

    def _values(self) -> list[Any]:
        return [getattr(self, name) for name in self._names]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._names)
        return f"{type(self).__name__}({shown})"


# The kinds of a WorkerFailure: the function raised, or the process is dead or does not answer.
RAISED, DIED = "raised", "died"


class WorkerFailure(Word):
    """How one rank failed.

    error: the pickled exception (bytes), so that the controller needs none of the user's modules;
    or the exception itself where the controller made it.
    traceback: the user's frames as text; "" when the process died.
    """

    kind: str
    error: Any
    traceback: str = ""
    # One line of text.
    summary: str = ""


class StartFailure(Word):
    """Why a group did not start.

    transient: another attempt may succeed (a worker died, or no room was found in time); others
    end the run at once. error: an exception that pickles.
    """

    error: BaseException
    transient: bool
    summary: str = ""


# ---- events


class Begin(Word):
    """fit() was called."""


class RoomMeasured(Word):
    """The nodes have room for so many workers (at most the maximum), counting the group's own."""

    attempt: int
    possible: int


class GroupPlaced(Word):
    """The placement group has its resources."""

    attempt: int


class GroupStarted(Word):
    """The functions are running."""

    attempt: int


class GroupFailed(Word):
    """The group could not be started."""

    attempt: int
    failure: StartFailure


class Reported(Word):
    """A rank has made its next report."""

    attempt: int
    rank: int
    report: TrainingReport


class WorkerFinished(Word):
    """A rank's function has returned, and all its reports were taken. value: pickled, or None."""

    attempt: int
    rank: int
    value: bytes | None = None


class WorkerFailed(Word):
    """A rank's function has raised, or its process died."""

    attempt: int
    rank: int
    failure: WorkerFailure


class NodeDraining(Word):
    """Nodes of the group go away. deadline: by the controller's clock; None if unknown."""

    attempt: int
    node_to_ranks: dict[str, list[int]]
    deadline: float | None = None
    deadline_ms: int | None = None


class GroupStopped(Word):
    """Nothing of the group is left."""

    attempt: int


class Abort(Word):
    """The user wants the run to end."""


class ControllerBroke(Word):
    """Something failed in the controller itself. error: an exception that pickles."""

    error: BaseException


class Tick(Word):
    """The machine's deadline has come."""


# ---- actions


class MeasureRoom(Word):
    """Measure for how many workers the nodes have room; answer with RoomMeasured."""

    attempt: int


class StartGroup(Word):
    """Start `size` workers; answer with GroupPlaced, then GroupStarted, or with GroupFailed."""

    attempt: int
    size: int


class StopGroup(Word):
    """End the group; answer with GroupStopped. orderly: all functions have returned."""

    attempt: int
    orderly: bool


class Register(Word):
    """Register a report that is complete. reports: rank -> its report, or None for a rank on a
    drained node that did not come."""

    attempt: int
    reports: tuple[TrainingReport | None, ...]


class TellFailures(Word):
    """Tell callbacks of an attempt that failed. failures: by rank."""

    failures: dict[int, WorkerFailure]


class TellDraining(Word):
    """Tell the workers which of their nodes go away.

    optional: ranks for which report() and get_preemption_info() need not wait from now on; []
    leaves that as it is.
    """

    deadline_ms: int | None
    node_to_ranks: dict[str, list[int]]
    # Nobody changes this list, so that all objects may share it.
    optional: list[int] = []


class Show(Word):
    """The run has a new status, with one line that says why ("" if nothing is to be said)."""

    status: str
    detail: str = ""


class ShowAttempt(Word):
    """The status of the current attempt has changed."""

    attempt: int
    status: str
    detail: str = ""


class Say(Word):
    """Tell the user a line. level: "info" or "warning"."""

    level: str
    text: str


class Outcome(Word):
    """How the run ended.

    status: FINISHED, ERRORED or ABORTED. value: rank 0's pickled return value. failures: of the
    workers in the attempt that ended the run. error: another reason. drained: nodes (id -> ranks)
    whose end used up the budget of preemptions.
    """

    status: str
    value: bytes | None = None
    # Nobody changes this dict, so that all objects may share it.
    failures: dict[int, WorkerFailure] = {}
    error: BaseException | None = None
    drained: dict[str, list[int]] | None = None
    deadline_ms: int | None = None
    drain_timed_out: bool = False


class End(Word):
    """The run is over."""

    outcome: Outcome
