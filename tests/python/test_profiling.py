"""Submissions in ray.timeline(): marks, and with RAY_PROFILING spans as long as they took, beside
those of other calls and of the program's own."""

import logging

import pytest

import ray
from ray._private.profiling import profile
from waiting import until

pytestmark = pytest.mark.usefixtures("no_cluster")


@ray.remote
def inner():
    return 1


@ray.remote
def outer():
    with profile("mine"):
        return ray.get(inner.remote())


def events_with(enough):
    """Returns the timeline, once it has what `enough` looks for."""
    return until(ray.timeline, enough)


def of_type(events, *kinds):
    return sorted(
        (event for event in events if event["cat"] in kinds), key=lambda event: event["ts"]
    )


def bodies(events, count):
    return sum(event["cat"].startswith("task::") for event in events) >= count


def test_marks_cost_nothing_and_are_there():
    ray.init(num_cpus=1)

    @ray.remote
    class Actor:
        def method(self):
            return 1

    ray.get(outer.remote())
    actor = Actor.remote()
    ray.get(actor.method.remote())
    # The task is cancelled before a process had it.
    with profile("no-op"):
        never = inner.options(num_cpus=1, resources={"nowhere": 1}).remote()
    ray.cancel(never)
    with pytest.raises(ray.exceptions.TaskCancelledError):
        ray.get(never)
    events = events_with(
        lambda events: bodies(events, 4) and len(of_type(events, "submit_task")) >= 5
    )
    marks = of_type(events, "submit_task")
    assert [mark["tid"].partition(":")[0] for mark in marks] == [
        "driver",
        "worker",
        "driver",
        "driver",
        "driver",
    ]
    assert all(mark["dur"] == 1.0 and mark["args"] == {} for mark in marks)
    [body] = of_type(events, "task::outer")
    assert (
        marks[1]["tid"] == body["tid"] and body["ts"] <= marks[1]["ts"] <= body["ts"] + body["dur"]
    )
    assert not of_type(
        events, "mine", "no-op", "ray.get", "ray.wait", "ray.put", "wait_for_function"
    )


def test_only_the_process_that_profiles_records():
    ray.init(num_cpus=2)
    ray.get(outer.options(runtime_env={"env_vars": {"RAY_PROFILING": ""}}).remote())
    events = events_with(
        lambda events: (
            bodies(events, 2)
            and len(of_type(events, "submit_task")) >= 2
            and of_type(events, "mine")
            and of_type(events, "ray.get")
        )
    )
    [of_driver, of_worker] = of_type(events, "submit_task")
    [body] = of_type(events, "task::outer")
    assert of_driver["tid"].startswith("driver:") and of_driver["dur"] == 1.0
    # The submission was measured, and there is no mark beside it.
    assert of_worker["tid"] == body["tid"] and of_worker["dur"] > 1.0
    [mine], [get] = of_type(events, "mine"), of_type(events, "ray.get")
    assert (
        mine["tid"] == get["tid"] == body["tid"]
        and mine["ts"] <= get["ts"]
        and get["ts"] + get["dur"] <= mine["ts"] + mine["dur"]
    )


def test_actors_and_what_never_ran_are_measured(monkeypatch):
    # As in Ray, the variable counts whatever its value is.
    monkeypatch.setenv("RAY_PROFILING", "0")
    ray.init(num_cpus=1)

    @ray.remote
    class Async:
        async def method(self):
            with profile("in a coroutine"):
                return await inner.remote()

    actor = Async.options(num_cpus=0).remote()
    ray.get(actor.method.remote())
    never = inner.options(resources={"nowhere": 1}).remote()
    ray.cancel(never)
    with pytest.raises(ray.exceptions.TaskCancelledError):
        ray.get(never)
    events = events_with(
        lambda events: (
            bodies(events, 3)
            and len(of_type(events, "submit_task")) >= 4
            and of_type(events, "in a coroutine")
            and len(of_type(events, "ray.get")) >= 2
        )
    )
    spans = of_type(events, "submit_task")
    assert [span["tid"].partition(":")[0] for span in spans] == [
        "driver",
        "driver",
        "worker",
        "driver",
    ]
    assert not [span for span in spans if span["dur"] == 1.0]
    failed = of_type(events, "ray.get")[-1]
    assert (
        failed["args"]["type"] == "<class 'ray.exceptions.TaskCancelledError'>"
        and "Traceback" in failed["args"]["traceback"]
    )
    [call] = of_type(events, "task::Async.method")
    [span] = of_type(events, "in a coroutine")
    assert span["tid"] == call["tid"] and span["cname"] == "generic_work"


def test_what_is_dropped_is_told(monkeypatch, caplog):
    monkeypatch.setenv("RAY_PROFILING", "1")
    ray.init(num_cpus=1)
    with profile("large", {"text": "x" * 100_000}):
        pass
    with profile("small", {"object": object, "not a number": float("nan")}):
        pass
    with caplog.at_level(logging.WARNING, logger="ray"):
        events = events_with(lambda events: of_type(events, "small"))
    assert not of_type(events, "large") and "1 events are not in the timeline" in caplog.text
    assert of_type(events, "small")[0]["args"] == {
        "object": "<class 'object'>",
        "not a number": "nan",
    }

    # Half a surrogate pair is no UTF-8.
    half = "half \ud83d"
    with profile(half, {half: half}):
        pass
    with pytest.raises(ValueError), profile("failed", None):
        raise ValueError(half)
    events = events_with(lambda events: of_type(events, "failed"))
    assert of_type(events, "half ?")[0]["args"] == {"half ?": "half ?"}
    assert of_type(events, "failed")[0]["args"]["value"] == "half ?"

    for wrong in ((1,), ("type", "no dict")):
        with pytest.raises(TypeError, match="profile\\(\\) takes"):
            profile(*wrong)
