"""The exception tree: contract exceptions.json, RayTaskError's dual types."""

import gc
import json
import os
import pathlib
import pickle
import re
import subprocess
import sys
import traceback
import weakref

import pytest

import ray
from ray import exceptions as ex
from ray._private import executor

CONTRACT = os.path.join(os.path.dirname(__file__), "../../../shared/contract/exceptions.json")


@pytest.mark.skipif(not os.path.exists(CONTRACT), reason="the contract is not beside this checkout")
def test_tree_matches_the_contract():
    import inspect

    for name, facts in json.load(open(CONTRACT))["classes"].items():
        cls = getattr(ex, name)
        assert [base.__name__ for base in cls.__bases__] == facts["bases"], name
        if "init_params" in facts:
            parameters = [p.name for p in inspect.signature(cls.__init__).parameters.values()][1:]
            assert parameters[: len(facts["init_params"])] == [
                p.rstrip("=") for p in facts["init_params"]
            ], name


class Custom(Exception):
    def __init__(self, a, b):
        super().__init__(a)
        self.extra = b


def make(cause):
    return ex.RayTaskError("f", "text\nValueError: boom", cause, "ray::f", 12, "127.0.0.1")


def test_dual_types():
    error = make(ValueError("boom")).as_instanceof_cause()
    assert (
        isinstance(error, ValueError)
        and isinstance(error, ex.RayTaskError)
        and type(error).__name__ == "RayTaskError(ValueError)"
    )
    assert (
        error.args == (error.cause,)
        and error.pid == 12
        and error.function_name == "f"
        and str(error) == "text\nValueError: boom"
    )
    assert type(error).__mro__[1] is ex.RayTaskError
    custom = make(Custom(1, "more")).as_instanceof_cause()
    assert isinstance(custom, Custom) and custom.extra == "more"
    with pytest.raises(AttributeError):
        custom.nothing


def test_dual_types_go_with_their_last_instance():
    passing = type("Passing", (Exception,), {})
    error = make(passing("boom")).as_instanceof_cause()
    assert type(make(passing("boom")).as_instanceof_cause()) is type(error)
    known = weakref.ref(passing), weakref.ref(type(error))
    del passing, error
    # The class goes after the one that is derived from it.
    gc.collect()
    gc.collect()
    assert [reference() for reference in known] == [None, None]


def test_exceptions_of_the_interpreter_keep_their_fields():
    error = make(FileNotFoundError(2, "No such file", "here")).as_instanceof_cause()
    assert (
        isinstance(error, FileNotFoundError)
        and (error.errno, error.filename) == (2, "here")
        and error.args == (error.cause,)
    )
    assert isinstance(make(OSError("only text")).as_instanceof_cause(), OSError)
    broken = make(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid")).as_instanceof_cause()
    assert (
        isinstance(broken, UnicodeDecodeError) and broken.start == 0 and broken.reason == "invalid"
    )
    assert make(StopIteration(7)).as_instanceof_cause().value == 7


def test_every_exception_of_the_interpreter_is_caught_by_its_name():
    """This holds for MemoryError, too, which makes its instances itself."""
    import builtins

    with_arguments = (
        UnicodeDecodeError,
        UnicodeEncodeError,
        UnicodeTranslateError,
        ExceptionGroup,
        BaseExceptionGroup,
    )
    kinds = [
        kind
        for kind in vars(builtins).values()
        if isinstance(kind, type) and issubclass(kind, BaseException) and kind not in with_arguments
    ]
    assert [
        kind for kind in kinds if not isinstance(make(kind("boom")).as_instanceof_cause(), kind)
    ] == []

    class OurMemoryError(MemoryError):
        pass

    error = make(OurMemoryError("boom")).as_instanceof_cause()
    assert isinstance(error, MemoryError) and error.args == (error.cause,)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions have notes since Python 3.11")
def test_notes_of_the_cause_are_there_and_printed_once():
    cause = ValueError("boom")
    assert not hasattr(make(cause).as_instanceof_cause(), "__notes__")
    cause.add_note("of the task")
    error = ex.RayTaskError("f", "text\nValueError: boom\nof the task", cause).as_instanceof_cause()
    error = pickle.loads(pickle.dumps(error))
    assert error.__notes__ == ["of the task"] and str(error).count("of the task") == 1
    error.add_note("of the caller")
    assert error.__notes__ == ["of the task", "of the caller"]
    printed = "".join(traceback.format_exception(error))
    assert printed.count("of the task") == 1 and printed.count("of the caller") == 1

    program = """if True:
        from ray.exceptions import RayTaskError
        cause = ValueError("boom")
        cause.add_note("of the task")
        raise RayTaskError("f", "text\\nValueError: boom\\nof the task", cause).as_instanceof_cause()
    """
    uncaught = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True
    ).stderr
    assert uncaught.endswith("\nValueError: boom\nof the task\n")


def test_groups_and_base_exceptions():
    group = make(ExceptionGroup("several", [ValueError(1), TypeError(2)])).as_instanceof_cause()
    with pytest.raises(ExceptionGroup):
        try:
            raise group
        except* KeyError:
            pass
    interrupted = make(KeyboardInterrupt("by hand")).as_instanceof_cause()
    assert (
        isinstance(interrupted, KeyboardInterrupt)
        and isinstance(interrupted, Exception)
        and type(interrupted).__name__ == "RayTaskError(KeyboardInterrupt)"
    )
    assert make(SystemExit(3)).as_instanceof_cause().code == 3


def test_a_cause_with_exceptions_where_the_interpreter_has_no_groups(monkeypatch):
    """Python 3.9 and 3.10 have no exception groups."""

    class Several(Exception):
        exceptions = ()

    monkeypatch.delattr("builtins.BaseExceptionGroup")
    assert isinstance(make(Several("x")).as_instanceof_cause(), Several)


def test_causes_that_cannot_be_combined():
    class Closed(Exception):
        __slots__ = ("args",)

    plain = make(Closed()).as_instanceof_cause()
    assert isinstance(plain, ex.RayTaskError)


@pytest.mark.parametrize(
    "retried, is_retried",
    [
        (ex.RayTaskError, True),
        (ex.RayError, True),
        (ValueError, True),
        (KeyError, False),
    ],
)
def test_an_error_of_another_task_is_retried_by_its_class_and_by_its_cause(retried, is_retried):
    error = make(ValueError("boom")).as_instanceof_cause()
    assert executor.describe_error(error, None, (retried,), "", b"").is_retried == is_retried
    assert not executor.describe_error(KeyError(), None, (ex.RayError,), "", b"").is_retried


def test_pickling():
    for error in (
        make(ValueError("boom")).as_instanceof_cause(),
        make(ValueError("boom")),
        ex.ActorDiedError("why", "ab"),
        ex.ActorUnavailableError("now", "ab"),
        ex.GetTimeoutError("late"),
        ex.ObjectLostError("ab", None, ""),
        ex.TaskCancelledError("t"),
        ex.ObjectReconstructionFailedError("ab", reason="PUT"),
        ex.CrossLanguageError("of another language"),
    ):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error) and str(copy) == str(error)


def test_the_codes_of_errors_are_those_of_cpp():
    from ray._private import error_codes

    header = pathlib.Path(__file__).parents[2] / "common/base/status.h"
    in_cpp = {
        re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper(): int(number)
        for name, number in re.findall(r"^  k(\w+) = (\d+),", header.read_text(), re.MULTILINE)
    }
    codes = {name: code for name, code in vars(error_codes).items() if name in in_cpp}
    assert len(codes) > 20
    assert codes == {name: in_cpp[name] for name in codes}


def test_system_errors_by_code():
    from ray._private import error_codes, errors

    assert isinstance(errors.system_exception(error_codes.INVALID, "x"), ValueError)
    assert isinstance(
        errors.system_exception(error_codes.ALREADY_EXISTS, "x"), ex.ActorAlreadyExistsError
    )
    assert isinstance(errors.system_exception(error_codes.INTERNAL, "x"), ex.RaySystemError)
    fields = dict(
        code=error_codes.ACTOR_DIED,
        message="The actor died.",
        actor_id="ab",
        task_id="",
        object_id="",
        creation_error=b"",
    )
    died = errors.from_error_value(fields)
    assert (
        isinstance(died, ex.ActorDiedError)
        and died.actor_id == "ab"
        and str(died) == "The actor died."
    )
    assert ray.exceptions is ex
