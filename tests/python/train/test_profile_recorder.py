"""Recording in the thread that trains, with the torch that is there, in the process of the test."""

import json
import os
import sys
import threading
import time
import types

import pytest

from ray.train.profiles import files, foreign, profiler
from ray.train.profiles.order import Order
from ray.train.profiles.recorder import FAILED, RECORDED, Recorder
from ray.train.profiles.steps import BATCH, OWN, REPORT, Steps, finest
from ray.train.storage import StorageContext
from ray.train.times import DATA, Times

torch = pytest.importorskip("torch")


@pytest.fixture
def rank(tmp_path):
    """A rank whose function is the test; attributes: steps, recorder, step(kind), order(...)."""
    steps = Steps()
    steps.begin()
    session = types.SimpleNamespace(
        steps=steps,
        times=Times(None),
        storage=StorageContext(str(tmp_path), "run"),
        world_rank=3,
        node_ip="127.0.0.1",
    )
    recorder = Recorder(session)

    def step(kind=BATCH, count=1):
        for _ in range(count):
            torch.mm(torch.ones(8, 8), torch.ones(8, 8))
            session.times.add(DATA, 1e-4)
            steps.made(kind)

    def order(**more):
        fields = {"id": "p", "directory": str(tmp_path / "run.profiles" / "p"), "origin_ns": 0}
        return Order(**{**fields, "steps": 2, **more})

    yield types.SimpleNamespace(steps=steps, recorder=recorder, step=step, order=order)
    assert steps.recorder is None and session.times.spans is None
    assert not torch.autograd._profiler_enabled()
    foreign.install(None)


def numbers(result):
    return [step["step"] for step in result["digest"]["steps"]]


def test_steps_count_in_the_thread_of_the_function_only():
    steps = Steps()
    steps.made(BATCH)
    steps.begin()
    steps.made(REPORT)
    other = threading.Thread(target=steps.made, args=(BATCH,))
    other.start()
    other.join()
    assert steps.counts() == {BATCH: 0, OWN: 0, REPORT: 1}


def test_the_finest_kind_that_all_ranks_use_counts():
    def counts(batches, own, reports):
        return {BATCH: batches, OWN: own, REPORT: reports}

    assert finest([counts(0, 0, 0)]) is None
    assert finest([counts(1, 2, 3), counts(1, 0, 1)]) == BATCH
    assert finest([counts(1, 2, 3), counts(0, 5, 1)]) == OWN
    assert finest([counts(9, 0, 3), counts(0, 0, 3)]) == REPORT
    assert finest([counts(9, 0, 0), counts(0, 0, 0)]) == BATCH


def test_the_steps_asked_for_are_recorded(rank):
    rank.step(count=5)
    assert rank.recorder.look() == {"counts": {BATCH: 5, OWN: 0, REPORT: 0}, "problem": None}
    assert rank.recorder.arm(rank.order(kind=BATCH, begin=8))["armed"]
    rank.step(REPORT)
    before = time.time_ns()
    rank.step(count=6)
    result = rank.recorder.result("p")
    assert (result["status"], result["detail"]) == (RECORDED, None), result
    assert numbers(result) == [8, 9] and result["kind"] == BATCH and result["begin"] == 8
    for step in result["digest"]["steps"]:
        assert "aten::mm" in [one["name"] for one in step["operators"]]
        assert step["total_us"] == pytest.approx(
            sum(step[f"{name}_us"] for name in ("compute", "communication", "data", "idle")), abs=1
        )
        assert step["data_us"] > 0
    with open(result["trace"]) as file:
        content = json.load(file)
    names = {event.get("name") for event in content["traceEvents"]}
    assert {"ProfilerStep#8", "ProfilerStep#9"} <= names
    marks = [one for one in content["traceEvents"] if one.get("name") == "ProfilerStep#8"]
    began_ns = content["baseTimeNanoseconds"] + marks[0]["ts"] * 1000
    assert before < began_ns < time.time_ns(), "it tells wall-clock time"
    assert not {"ProfilerStep#7", "ProfilerStep#10"} & names
    directory = os.path.dirname(result["trace"])
    assert all(not name.startswith(".") for name in os.listdir(directory))
    assert rank.recorder.look()["problem"] is None
    assert rank.recorder.result("p")["status"] == FAILED, "it is given once"


@pytest.mark.parametrize("warmup", [0, 1, 3])
def test_a_profile_from_the_start_finds_the_kind_of_the_steps(rank, warmup):
    assert rank.recorder.arm(rank.order(begin=2 + warmup, warmup=warmup))["armed"]
    rank.step(REPORT)
    rank.step(BATCH, count=1)
    rank.step(REPORT)
    rank.step(BATCH, count=3 + warmup)
    result = rank.recorder.result("p")
    assert result["status"] == RECORDED and numbers(result) == [2 + warmup, 3 + warmup]
    assert result["kind"] == BATCH


def test_as_soon_as_possible(rank):
    rank.step(REPORT, count=41)
    rank.recorder.arm(rank.order(kind=REPORT, begin=None))
    rank.step(REPORT, count=4)
    assert numbers(rank.recorder.result("p")) == [43, 44]


def test_a_step_that_has_begun_is_too_late(rank):
    rank.step(count=8)
    for begin in (7, 9):
        answer = rank.recorder.arm(rank.order(kind=BATCH, begin=begin))
        assert not answer["armed"] and answer["counts"][BATCH] == 8
    assert rank.recorder.arm(rank.order(kind=BATCH, begin=10))["armed"]
    # No step has begun when the order is made, but one has when the order comes.
    assert "another profile" in rank.recorder.arm(rank.order())["problem"]
    rank.recorder.cancel("p", "enough", 1)
    assert not rank.recorder.arm(rank.order(kind=None, begin=2))["armed"]


def test_a_profile_is_cancelled_before_and_while_it_records(rank):
    rank.recorder.arm(rank.order(kind=BATCH, begin=3))
    assert rank.recorder.cancel("other", "x", 0) and rank.recorder.look()["problem"] is not None
    assert rank.recorder.cancel("p", "no more", 0)
    assert rank.recorder.result("p") == {"status": FAILED, "detail": "no more"}
    rank.recorder.arm(rank.order(kind=BATCH, begin=3))
    rank.step(count=3)
    assert torch.autograd._profiler_enabled()
    assert not rank.recorder.cancel("p", "no more", 0), "only the training thread can end it"
    assert "another profile" in rank.recorder.look()["problem"]
    rank.step()
    assert rank.recorder.cancel("p", "", 0) and not torch.autograd._profiler_enabled()
    assert rank.recorder.result("p")["detail"] == "no more"


def test_a_rank_without_a_step_is_stuck(rank):
    rank.recorder.arm(rank.order(kind=BATCH, begin=2, timeout_s=0.001))
    result = rank.recorder.result("p")
    assert result["status"] == FAILED and result["stuck"]
    assert "it made no step for 0.001 s (a step is a batch" in result["detail"]
    rank.recorder.arm(rank.order(kind=BATCH, begin=2, timeout_s=0.001))
    rank.step(count=2)
    assert rank.recorder.result("p")["stuck"] and torch.autograd._profiler_enabled()
    rank.step()
    assert not torch.autograd._profiler_enabled(), "the next step ends it"


@pytest.mark.parametrize(
    "count, status, detail, recorded",
    [
        (0, FAILED, "the function ended before step 3 was recorded", None),
        (2, FAILED, "the function ended before step 3 was recorded", None),
        (3, RECORDED, "the function ended after 1 of 2 steps", [3]),
        (4, RECORDED, None, [3, 4]),
    ],
)
def test_a_function_that_ends_early(rank, count, status, detail, recorded):
    rank.recorder.arm(rank.order(kind=BATCH, begin=3))
    rank.step(count=count)
    rank.recorder.close(True)
    result = rank.recorder.result("p")
    assert (result["status"], result["detail"]) == (status, detail)
    assert recorded is None or numbers(result) == recorded
    assert rank.recorder.look()["problem"] == "its function has ended"
    assert rank.recorder.arm(rank.order())["problem"] == "its function has ended"


def test_a_function_that_has_ended_before_anybody_asked(rank):
    late = Recorder(rank.recorder._session, True)
    assert late.look()["problem"] == "its function has ended"
    assert late.arm(rank.order())["problem"] == "its function has ended"


def test_a_function_that_raises_is_not_waited_for(rank):
    rank.recorder.arm(rank.order(kind=BATCH, begin=2))
    rank.recorder.close(False)
    assert rank.recorder.result("p")["detail"] == "the function raised an exception"


def test_the_function_s_own_profiler_goes_first(rank):
    foreign.install(rank.steps)
    with torch.profiler.profile(schedule=torch.profiler.schedule(wait=0, warmup=9, active=1)):
        assert foreign.is_active()
        rank.recorder.arm(rank.order(kind=BATCH, begin=2))
        rank.step()
        result = rank.recorder.result("p")
        assert result["status"] == FAILED and "own torch.profiler is active" in result["detail"]
    assert not foreign.is_active()
    with torch.autograd.profiler.profile(**legacy_options()):
        rank.recorder.arm(rank.order(kind=BATCH, begin=3))
        rank.step()
        assert "own torch.profiler is active" in rank.recorder.result("p")["detail"]
    assert not foreign.is_active()


def legacy_options():
    return {} if torch.autograd.kineto_available() else {"use_kineto": False}


@pytest.mark.parametrize("steps, recorded", [(2, None), (4, [3])])
def test_ours_makes_way_when_the_function_s_own_profiler_starts(rank, steps, recorded):
    rank.recorder.arm(rank.order(kind=BATCH, begin=3, steps=5))
    rank.step(count=steps)
    with torch.profiler.profile() as own:
        torch.ones(3) + 1
    assert any(event.name == "aten::add" for event in own.events()), "theirs works"
    result = rank.recorder.result("p")
    if recorded is None:
        assert result["status"] == FAILED and "own torch.profiler started" in result["detail"]
    else:
        assert result["status"] == RECORDED and numbers(result)[:1] == recorded
        assert result["detail"] == "the function's own torch.profiler started after 1 of 5 steps"


def test_calls_of_the_function_s_own_step_count_and_ours_do_not(rank):
    foreign.install(rank.steps)
    with torch.profiler.profile(schedule=lambda step: torch.profiler.ProfilerAction.NONE) as own:
        own.step()
        rank.recorder.arm(rank.order(kind=OWN, begin=3))
        for _ in range(5):
            torch.ones(3) + 1
            own.step()
    assert numbers(rank.recorder.result("p")) == [3, 4]
    assert rank.steps.counts()[OWN] == 6


def test_an_error_of_torch_does_not_reach_the_function(rank, monkeypatch):
    monkeypatch.setattr(torch.autograd, "kineto_available", lambda: 1 / 0)
    rank.recorder.arm(rank.order(kind=BATCH, begin=2))
    rank.step()
    result = rank.recorder.result("p")
    assert result["detail"] == "torch.profiler failed: ZeroDivisionError: division by zero"


def test_a_trace_that_cannot_be_written_fails(rank, tmp_path):
    (tmp_path / "run.profiles").write_text("a file in the way")
    rank.recorder.arm(rank.order(kind=BATCH, begin=2))
    rank.step(count=4)
    result = rank.recorder.result("p")
    assert result["status"] == FAILED and "could not be written" in result["detail"]


def test_a_trace_that_is_too_large_stays_and_is_not_read(rank, monkeypatch):
    monkeypatch.setattr(files, "MOST_TRACE_BYTES", 10)
    rank.recorder.arm(rank.order(kind=BATCH, begin=2))
    rank.step(count=4)
    result = rank.recorder.result("p")
    assert result["status"] == RECORDED and os.path.exists(result["trace"])
    assert result["digest"]["steps"] == [] and result["fragment"] == b""
    assert "could not be summarised: it has " in result["digest"]["notes"][-1]


def test_a_function_without_torch_is_told_so(rank, monkeypatch):
    monkeypatch.delitem(sys.modules, "torch")
    assert "has not imported torch" in profiler.missing()
    rank.recorder.arm(rank.order(kind=REPORT, begin=2))
    rank.steps.made(REPORT)
    assert "has not imported torch" in rank.recorder.result("p")["detail"]
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(__version__="1.0"))
    assert "PyTorch 1.0 has no torch.profiler.profile" in profiler.missing()


def test_what_this_torch_cannot_record_is_said(rank):
    rank.recorder.arm(rank.order(kind=BATCH, begin=2, warmup=0))
    rank.step(count=4)
    found = rank.recorder.result("p")["digest"]
    if not torch.autograd.kineto_available():
        assert any("without kineto" in note for note in found["notes"]) and not found["memory"]
        return
    assert found["notes"] == [] and len(found["memory"]["times_us"]) > 1
    rank.recorder.arm(rank.order(kind=BATCH, begin=6, warmup=0, with_stack=False))
    rank.step(count=4)
    found = rank.recorder.result("p")["digest"]
    assert any("needs shapes and stacks" in note for note in found["notes"])
    assert set(found["memory"]["categories"]) == {"allocated"}
