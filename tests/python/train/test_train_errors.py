"""Errors of runs: their classes and texts, and that both survive the way to the driver."""

import pickle

import pytest

from ray.exceptions import ActorDiedError
from ray.train import (
    ControllerError,
    NCCLHangError,
    PreemptionError,
    PreemptionInfo,
    TrainingFailedError,
    WorkerGroupError,
)
from ray.train.errors import (
    CheckpointManagerInitializationError,
    WorkerGroupStartupError,
    WorkerGroupStartupFailedError,
    WorkerGroupStartupTimeoutError,
    WorkerHealthCheckFailedError,
    user_traceback,
    worker_group_error,
)


class TwoArguments(Exception):
    """Pickles, but cannot be restored, which is a common mistake in classes of exceptions."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


class Unpicklable(Exception):
    def __reduce__(self):
        raise TypeError("a lock cannot be pickled")


def raised(error):
    try:
        raise error
    except BaseException as caught:
        return caught


def test_classes():
    for error in (WorkerGroupError, ControllerError, PreemptionError):
        assert issubclass(error, TrainingFailedError)
        assert error.__module__ == "ray.train"
    assert issubclass(NCCLHangError, WorkerGroupError)
    assert issubclass(WorkerGroupStartupTimeoutError, WorkerGroupStartupError)


@pytest.mark.parametrize(
    "error",
    [
        WorkerGroupError("a text", {0: ValueError("x"), 3: SystemExit(2)}),
        NCCLHangError("a text", {1: KeyError("x")}),
        ControllerError(ValueError("x")),
        PreemptionError(PreemptionInfo(5, {"node": [1, 0]}), True),
        WorkerHealthCheckFailedError("It died.", ActorDiedError("killed")),
        WorkerHealthCheckFailedError("It died."),
        WorkerGroupStartupTimeoutError(2, 60.0),
        WorkerGroupStartupFailedError("x"),
        CheckpointManagerInitializationError("x"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_pickle(error):
    restored = pickle.loads(pickle.dumps(error))
    assert type(restored) is type(error) and str(restored) == str(error)
    assert repr(vars(restored)) == repr(vars(error))


@pytest.mark.parametrize("inner", [TwoArguments(1, 2), Unpicklable("held")])
def test_an_inner_exception_that_does_not_pickle_leaves_its_text(inner):
    error = WorkerGroupError("a text", {0: inner, 1: ValueError("fine")})
    restored = pickle.loads(pickle.dumps(error))
    assert type(restored.worker_failures[0]) is RuntimeError
    assert f"{type(inner).__name__}: {inner}" in str(restored.worker_failures[0])
    assert type(restored.worker_failures[1]) is ValueError


def test_texts_name_the_inner_error():
    assert "ValueError: too small" in str(ControllerError(ValueError("too small")))
    error = WorkerHealthCheckFailedError("Rank 1 died.", ActorDiedError("killed"))
    assert str(error).startswith("Rank 1 died.") and "killed" in str(error)
    assert isinstance(error.health_check_failure, ActorDiedError)
    assert "[0, 1]" in str(PreemptionError(PreemptionInfo(None, {"a": [1], "b": [0]})))


def test_preemption_info():
    info = PreemptionInfo(17, {"b": [3, 0], "a": [1]})
    assert info.preempted_ranks == [0, 1, 3] and info.preempted_node_ids == ["a", "b"]
    with pytest.raises(AttributeError):
        info.deadline_ms = 18


def test_equal_errors_are_shown_once():
    failures = {
        2: ValueError("rank 2 saw 17"),
        0: ValueError("rank 0 saw 4"),
        1: KeyError("lr"),
    }
    text = str(worker_group_error(failures, {}))
    assert "[Rank 0,2 Error Snippet]:\nValueError: rank 0 saw 4\n" in text
    assert "[Rank 1 Error Snippet]:\nKeyError: 'lr'" in text
    assert "saw 17" not in text


def test_tracebacks_are_shown_and_cut():
    long = "begin" + "x" * 2000 + "end"
    text = str(worker_group_error({0: ValueError("a")}, {0: long}))
    assert "begin" in text and "end" in text and len(text) < 1300
    died = WorkerHealthCheckFailedError("y" * 2000)
    assert "y" * 2000 in str(worker_group_error({0: died}, {}))


def test_user_traceback_leaves_out_the_library():
    from ray.train.config import LoggingConfig

    text = user_traceback(raised_by(lambda: LoggingConfig("LOUD")))
    assert "raised_by" in text and "LOUD" in text
    assert "config.py" in text.replace("test_config.py", "") or "ray/train" not in text
    assert "/ray/train/" not in text.replace(__file__, "")


def raised_by(function):
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def test_user_traceback_keeps_causes():
    def fail():
        try:
            raise KeyError("inner")
        except KeyError as error:
            raise RuntimeError("outer") from error

    text = user_traceback(raised_by(fail))
    assert "KeyError: 'inner'" in text and "direct cause" in text and "RuntimeError: outer" in text
    assert "x = 1 / 0" not in text
