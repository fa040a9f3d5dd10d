"""The errors that `get` raises."""

import os
import signal

import pytest

import ray
from ray.exceptions import OwnerDiedError, RayError, RayTaskError, WorkerCrashedError

pytestmark = pytest.mark.usefixtures("cluster")


class Custom(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)
        self.b = b


@ray.remote
def fail(error):
    raise error


@ray.remote
def pass_on(x):
    return x


def test_type_text_and_attributes():
    with pytest.raises(ValueError) as caught:
        ray.get(fail.remote(ValueError("boom")))
    error = caught.value
    assert (
        isinstance(error, RayTaskError)
        and isinstance(error, RayError)
        and type(error).__name__ == "RayTaskError(ValueError)"
    )
    assert (
        isinstance(error.cause, ValueError)
        and error.cause.args == ("boom",)
        and error.function_name == "fail"
        and error.pid > 0
    )
    lines = str(error).split("\n")
    assert lines[0] == f"\x1b[36mray::fail()\x1b[39m (pid={error.pid}, ip={error.ip})"
    assert (
        lines[-1] == "ValueError: boom"
        and "raise error" in str(error)
        and "executor.py" not in str(error)
        and "Traceback" not in str(error)
    )


def test_custom_exceptions():
    with pytest.raises(Custom) as caught:
        ray.get(fail.remote(Custom(1, "two")))
    assert caught.value.b == "two" and caught.value.cause.args == (1, "two")


def test_an_error_that_no_message_can_carry_arrives_shortened():
    @ray.remote
    class Failing:
        def fail(self):
            raise ValueError("x" * 100_000_000)

        def m(self):
            return 1

    actor = Failing.remote()
    for ref in (fail.remote(ValueError("x" * 100_000_000)), actor.fail.remote()):
        with pytest.raises(RayTaskError) as error:
            ray.get(ref, timeout=240)
        text = str(error.value)
        assert "the exception itself is left out" in text
        assert len(text) < 10_000_000
    assert ray.get(actor.m.remote()) == 1


def test_first_error_of_a_list():
    """The first error in the order of the list is raised, among the errors that are there. get()
    waits for no value once there is an error."""
    refs = [ray.put(1), fail.remote(KeyError("k")), fail.remote(ValueError("v"))]
    ray.wait(refs, num_returns=len(refs), timeout=60)
    with pytest.raises(KeyError):
        ray.get(refs)


def test_errors_travel_through_arguments():
    with pytest.raises(ValueError, match="boom"):
        ray.get(pass_on.remote(pass_on.remote(fail.remote(ValueError("boom")))))


def test_errors_of_nested_gets_keep_their_cause():
    @ray.remote
    def outer():
        return ray.get(fail.remote(ValueError("deep")))

    with pytest.raises(ValueError) as caught:
        ray.get(outer.remote())
    assert (
        type(caught.value.cause) is ValueError
        and "ray::outer()" in str(caught.value)
        and "ray::fail()" in str(caught.value)
    )


def test_base_exceptions():
    import asyncio

    with pytest.raises(RayTaskError) as caught:
        ray.get(fail.remote(KeyboardInterrupt()))
    assert (
        isinstance(caught.value, ray.exceptions.TaskCancelledError)
        and caught.value.cause.task_id is not None
    )
    for kind in (GeneratorExit, asyncio.CancelledError):
        with pytest.raises(kind) as caught:
            ray.get(fail.remote(kind("why")))
        assert (
            isinstance(caught.value, RayTaskError)
            and isinstance(caught.value, Exception)
            and caught.value.args[0].args == ("why",)
        )


def test_errors_of_the_system_reach_dependent_tasks_as_causes():
    @ray.remote(max_retries=0)
    def crash():
        import os

        os._exit(3)

    crashed = crash.remote()
    with pytest.raises(WorkerCrashedError) as first:
        ray.get(crashed, timeout=60)
    assert (
        type(first.value) is WorkerCrashedError
        and str(first.value).count("exited with code 3") == 1
    )
    with pytest.raises(WorkerCrashedError) as caught:
        ray.get(pass_on.remote(pass_on.remote(crashed)), timeout=60)
    assert (
        isinstance(caught.value, RayTaskError)
        and type(caught.value.cause) is WorkerCrashedError
        and str(caught.value.cause) == str(first.value)
    )
    assert str(caught.value).count(
        "At least one of the input arguments"
    ) == 2 and "ray.exceptions.WorkerCrashedError: The worker died" in str(caught.value)


def test_an_object_of_a_dead_owner_is_named():
    @ray.remote
    class Owner:
        def make(self):
            return [ray.put(bytes(1 << 20))]

        def end(self):
            os.kill(os.getpid(), signal.SIGSEGV)

    owner = Owner.remote()
    [ref] = ray.get(owner.make.remote())
    with pytest.raises(ray.exceptions.ActorDiedError):
        ray.get(owner.end.remote())
    with pytest.raises(OwnerDiedError, match=r"died: .*SIGSEGV") as caught:
        ray.get(ref, timeout=60)
    assert caught.value.object_ref_hex == ref.hex() and str(caught.value).startswith(
        f"Failed to retrieve object {ref.hex()}. "
    )
    with pytest.raises(OwnerDiedError) as caught:
        ray.get(pass_on.remote(ref), timeout=60)
    assert caught.value.cause.object_ref_hex == ref.hex() and ref.hex() in str(caught.value)


class Bomb:
    def __reduce__(self):
        return int, ("no number",)


def test_values_that_cannot_be_loaded():
    with pytest.raises(ray.exceptions.RaySystemError, match="no number") as caught:
        ray.get(ray.put(Bomb()))
    assert (
        type(caught.value) is ray.exceptions.RaySystemError
        and type(caught.value.client_exc) is ValueError
    )
    with pytest.raises(ray.exceptions.RaySystemError, match="no number") as caught:
        ray.get(pass_on.remote(Bomb()))
    assert isinstance(caught.value, RayTaskError) and not isinstance(caught.value, ValueError)


def test_chained_exceptions():
    @ray.remote
    def chained():
        try:
            1 / 0
        except ZeroDivisionError as error:
            raise RuntimeError("second") from error

    with pytest.raises(RuntimeError) as caught:
        ray.get(chained.remote())
    assert "ZeroDivisionError" in str(caught.value) and "direct cause" in str(caught.value)


def test_exceptions_that_cannot_be_pickled():
    @ray.remote
    def unpicklable():
        import threading

        error = ValueError("has a lock")
        error.lock = threading.Lock()
        raise error

    with pytest.raises(RayTaskError, match="has a lock") as error:
        ray.get(unpicklable.remote())
    assert type(error.value) is RayTaskError and type(error.value.cause) is ray.exceptions.RayError
    assert "ValueError isn't serializable" in str(error.value.cause)

    @ray.remote
    def broken_constructor():
        class Odd(Exception):
            def __init__(self, a, b):
                super().__init__("only one")

        raise Odd(1, 2)

    with pytest.raises(ray.exceptions.UnserializableException, match="only one"):
        ray.get(broken_constructor.remote())


def test_exit_in_a_task():
    @ray.remote(max_retries=0)
    def leave():
        raise SystemExit(1)

    with pytest.raises(WorkerCrashedError):
        ray.get(leave.remote(), timeout=60)


def test_segfault():
    @ray.remote(max_retries=0)
    def crash():
        import ctypes

        ctypes.string_at(0)

    with pytest.raises(WorkerCrashedError, match="signal 11|SIGSEGV"):
        ray.get(crash.remote(), timeout=60)
