"""Traces of a torch without kineto, whose events do not tell when their clock was 0."""

import json

import pytest

from ray.train.profiles import legacy

EPOCH_NS = 1_700_000_000_000_000_000


def event(name, start_us):
    return legacy.Event(name, 0, 1, start_us, start_us + 10, [])


def base_ns(tmp_path, events, marks):
    path = tmp_path / "trace.json"
    legacy.write(events, marks, str(path))
    return json.loads(path.read_text())["baseTimeNanoseconds"]


def test_the_mark_whose_moments_are_closest_tells_the_time(tmp_path):
    events = [event(f"ProfilerStep#{number}", 1000 * number) for number in (1, 2, 3)]
    marks = {
        # The thread lost its processor for 8 ms before the event began.
        "ProfilerStep#1": (EPOCH_NS - 7_000_000, EPOCH_NS + 1_000_000),
        "ProfilerStep#2": (EPOCH_NS + 1_998_000, EPOCH_NS + 2_002_000),
        "ProfilerStep#3": (EPOCH_NS + 2_900_000, EPOCH_NS + 3_001_000),
        # This one has begun, but was not recorded any more.
        "ProfilerStep#4": (EPOCH_NS, EPOCH_NS),
    }
    assert base_ns(tmp_path, events, marks) == EPOCH_NS


def test_a_trace_without_marks_begins_at_the_first_moment_that_is_known(tmp_path):
    assert (
        base_ns(tmp_path, [event("aten::add", 5)], {"ProfilerStep#1": (EPOCH_NS, EPOCH_NS + 9)})
        == EPOCH_NS
    )


def test_events_may_end_after_the_recording_was_stopped():
    """Collectives do: the thread that ends their events may not have run yet."""
    torch = pytest.importorskip("torch")
    annotation = torch.autograd.profiler.record_function
    for _ in range(20):
        profile = legacy.Profile(number=1, begin=2, record_shapes=True)
        profile.start()
        with annotation("before the first step"):
            pass
        profile.step()
        late = [torch.futures.Future() for _ in range(200)]
        for future in late:
            with annotation("late") as one:
                one._call_end_callbacks_on_future(future)
        with annotation("in time"):
            pass
        profile.stop()
        for future in late:
            future.set_result(None)
        names = {event.name for event in profile.events}
        assert {name for name in names if not name.startswith("aten::")} == {"in time"}
