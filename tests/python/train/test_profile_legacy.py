"""Traces of a torch without kineto, whose events do not tell when their clock was 0."""

import json
from types import SimpleNamespace

from ray.train.profiles import legacy

EPOCH_NS = 1_700_000_000_000_000_000


def event(name, start_us):
    return SimpleNamespace(
        name=name, thread=1, time_range=SimpleNamespace(start=start_us, end=start_us + 10)
    )


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
