"""How the time of a step is divided, on traces whose answers are known; and the merged trace."""

import gzip
import json
import subprocess
import sys

import pytest
from profile_support import BACKWARD, GLOO, ORIGIN_NS, PID, TraceBuilder, order, span

from ray.train.profiles import digest, fragment, memory, merge, shares, store
from ray.train.profiles.intervals import length, minus, union, within
from ray.train.profiles.traces import Event, Trace


def test_sets_of_times():
    both = union([(5, 7), (0, 2), (1, 3), (7, 8), (4, 4)])
    assert both == [(0, 3), (5, 8)] and length(both) == 6
    assert minus(both, [(1, 2), (6, 9)]) == [(0, 1), (2, 3), (5, 6)]
    assert minus(both, []) == both and minus([], both) == []
    assert minus([(0, 10)], [(0, 1), (9, 12)]) == [(1, 9)]
    assert within(both, (2, 6)) == [(2, 3), (5, 6)] and within(both, (3, 5)) == []


def parts(step):
    names = ("compute_us", "communication_us", "data_us", "idle_us", "total_us")
    return tuple(step[name] for name in names)


def test_a_step_is_divided_without_counting_anything_twice(tmp_path):
    trace = (
        TraceBuilder(base_us=50)
        .step(7, 0, 1000)
        # 0 to 300: nested operators, which are 300 of compute and not 300 + 200 + 100.
        .span("aten::linear", 0, 300)
        .span("aten::addmm", 50, 250)
        .span("aten::copy_", 100, 200)
        # 300 to 400: Python. 350 to 700: a collective, of which 400 to 600 are hidden by compute.
        .span("gloo:all_reduce", 350, 700, tid=GLOO, cat="user_annotation")
        .span("aten::mm", 400, 600)
        # 700 to 800: a collective that blocks, inside an operator that calls it.
        .span("SyncBatchNorm", 700, 850)
        .span("c10d::allreduce_", 700, 800)
        # 850 to 950: a batch is loaded, by operators.
        .span("enumerate(DataLoader)#_Single", 850, 950, cat="user_annotation")
        .span("aten::stack", 860, 940)
        .step(8, 1000, 1100)
        .span("aten::mm", 900, 1050, tid=BACKWARD)
        .write(tmp_path / "trace.json")
    )
    found = digest.digest(order(tmp_path, trace, steps=(7, 8)))
    first, second = found["steps"]
    assert (first["step"], second["step"]) == (7, 8)
    # The operator of the other thread fills 950 to 1000; data loading goes before it.
    assert parts(first) == (300 + 200 + 50 + 50, 50 + 100 + 100, 100, 50, 1000)
    assert parts(second) == (50, 0, 0, 50, 100)
    costs = {one["name"]: (one["total_us"], one["count"]) for one in first["operators"]}
    assert costs["aten::linear"] == (100, 1) and costs["aten::addmm"] == (100, 1)
    assert costs["aten::copy_"] == (100, 1) and costs["SyncBatchNorm"] == (50, 1)
    assert costs["gloo:all_reduce"] == (350, 1) and costs["aten::mm"] == (300, 2)
    assert found["begin_us"] == 50 and found["operators"][0]["name"] == "aten::mm"


def test_operators_are_dealt_to_all_steps_that_they_touch():
    windows = [(0, 10), (10, 20), (25, 30)]
    events = [Event(name, *times, 1, False) for name, times in NAMED_TIMES.items()]
    found = [[event.name for event in own] for own in shares.dealt(events, windows)]
    assert found == [["before", "long"], ["long", "second"], ["long", "third"]]
    assert within([(0, 1), (2, 12), (13, 14), (19, 40)], (10, 20)) == [(10, 12), (13, 14), (19, 20)]


NAMED_TIMES = {
    "before": (-5, 1),
    "long": (5, 26),
    "second": (10, 11),
    "gap": (21, 24),
    "third": (29, 50),
    "after": (30, 31),
}


def test_an_operator_that_waits_for_its_collective_does_not_compute(tmp_path):
    trace = (
        TraceBuilder()
        .step(1, 0, 100)
        .span("SyncBatchNorm", 0, 100)
        .span("aten::sum", 0, 10)
        .span("gloo:all_gather", 20, 90, tid=GLOO, cat="user_annotation")
        .write(tmp_path / "trace.json")
    )
    (step,) = digest.digest(order(tmp_path, trace))["steps"]
    assert parts(step) == (30, 70, 0, 0, 100)


def test_the_run_s_own_waits_count(tmp_path):
    trace = TraceBuilder(base_us=10).step(2, 0, 1000).span("aten::mm", 0, 100)
    spans = [
        span("data loader", 110, 210),
        span("report", 310, 610),
        span("report: wait for ranks", 310, 510),
        span("checkpoint upload", 510, 600),
        span("collective", 700, 800),
        # In another thread, loading costs the step nothing.
        span("data loader", 0, 1000, is_training=False),
    ]
    found = digest.digest(
        order(tmp_path, trace.write(tmp_path / "trace.json"), spans=spans, steps=(2,))
    )
    (step,) = found["steps"]
    assert parts(step) == (100, 300, 100, 500, 1000) and step["report_us"] == 300


def test_the_device_s_kernels_alone_are_compute_where_there_are_some(tmp_path):
    trace = (
        TraceBuilder()
        .step(1, 0, 100)
        .span("aten::mm", 0, 90)
        .span("gemm", 20, 50, tid=7, cat="kernel", pid=0)
        .span("ncclDevKernel_AllReduce", 40, 80, tid=13, cat="kernel", pid=0)
        .span("Memcpy HtoD", 85, 95, tid=7, cat="gpu_memcpy", pid=0)
        .write(tmp_path / "trace.json")
    )
    found = digest.digest(order(tmp_path, trace))
    assert parts(found["steps"][0]) == (40, 30, 0, 30, 100)
    names = [one["name"] for one in found["operators"]]
    assert names == ["ncclDevKernel_AllReduce", "gemm", "Memcpy HtoD"]


def test_operators_that_overlap_in_a_thread_are_cut_at_their_caller_s_end():
    events = [
        Event("outer", 0, 10, 1, False),
        Event("late", 5, 15, 1, False),
        Event("next", 10, 12, 1, False),
    ]
    pieces = [(one.name, one.begin, one.end) for one in shares.innermost(events)]
    assert sorted(pieces) == [("late", 5, 10), ("next", 10, 12), ("outer", 0, 5)]


def test_a_trace_without_marks_of_steps_has_those_of_the_recorder(tmp_path):
    trace = TraceBuilder().span("aten::mm", 10, 30).write(tmp_path / "trace.json")
    boundaries = [[4, ORIGIN_NS, ORIGIN_NS + 40_000], [5, ORIGIN_NS + 40_000, ORIGIN_NS + 50_000]]
    found = digest.digest(order(tmp_path, trace, boundaries=boundaries))
    assert [parts(step) for step in found["steps"]] == [(20, 0, 0, 20, 40), (0, 0, 0, 10, 10)]


def test_marks_of_the_function_s_own_profiler_are_not_taken_for_ours(tmp_path):
    trace = (TraceBuilder().step(3, 0, 9).step(4, 10, 19).step(3, 11, 20).step(5, 30, 40)).write(
        tmp_path / "trace.json"
    )
    boundaries = [[3, ORIGIN_NS + 10_000, ORIGIN_NS + 19_000]]
    found = digest.digest(order(tmp_path, trace, boundaries=boundaries))
    assert [(step["step"], step["total_us"]) for step in found["steps"]] == [(3, 9)]
    assert found["begin_us"] == 11


def test_times_of_older_versions_are_since_the_epoch(tmp_path):
    builder = TraceBuilder().span("aten::mm", ORIGIN_NS / 1000 + 5, ORIGIN_NS / 1000 + 8)
    trace = Trace(builder.write(tmp_path / "trace.json"), ORIGIN_NS)
    assert [(one.begin, one.end) for one in trace.operators()] == [(5, 8)]


@pytest.mark.parametrize("text", ["[]", '{"traceEvents": 1}', "{"])
def test_a_file_that_is_no_trace(tmp_path, text):
    (tmp_path / "trace.json").write_text(text)
    with pytest.raises(ValueError):
        Trace(str(tmp_path / "trace.json"), 0)
    with pytest.raises(RuntimeError, match="."):
        digest.in_a_process(order(tmp_path, str(tmp_path / "trace.json")))


def test_the_process_of_a_digest_answers_the_same_and_ends_with_its_parent(tmp_path):
    trace = TraceBuilder().step(1, 0, 10).span("aten::mm", 2, 5).write(tmp_path / "trace.json")
    own = order(tmp_path, trace)
    assert digest.in_a_process(own) == json.loads(json.dumps(digest.digest(own)))
    # The child ends at once, because its parent is not the process that it was told.
    code = "import sys; from ray.train.profiles import digest; digest.main()"
    lost = subprocess.run([sys.executable, "-c", code, ".", "1"], input=b"{}", capture_output=True)
    assert (lost.returncode, lost.stdout, lost.stderr) == (1, b"", b"")


# ---- the merged trace


def merged(tmp_path, traces, spans=()):
    packed = []
    for rank, builder in enumerate(traces):
        trace = builder.write(tmp_path / f"trace{rank}.json")
        own = order(tmp_path, trace, rank=rank, spans=spans)
        digest.digest(own)
        packed.append(open(own["fragment"], "rb").read())
    path = str(tmp_path / "merged.gz")
    merge.merge(packed, [fragment.named(1, "process_name", name="c")], {"run": "x"}, path)
    with gzip.open(path) as file:
        return json.load(file)


def test_ranks_are_processes_of_one_trace_on_one_clock(tmp_path):
    traces = [
        TraceBuilder(base_us=base).step(3, 0, 100).span("aten::mm", 10, 20) for base in (0, 40)
    ]
    found = merged(tmp_path, traces, spans=[span("data loader", 5, 9)])
    assert found["run"] == "x"
    events = found["traceEvents"]
    names = {
        event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"
    }
    assert names == {1: "c", 1000: "rank 0 (a node)", 2000: "rank 1 (a node)"}
    products = {event["pid"]: event["ts"] for event in events if event["name"] == "aten::mm"}
    assert products == {1000: 10, 2000: 50}
    loads = {event["pid"]: event["ts"] for event in events if event["name"] == "data loader"}
    assert loads == {1000: 5, 2000: 5}
    assert not [event for event in events if event["pid"] == "Spans"]


def test_collectives_that_overlap_have_rows_of_their_own(tmp_path):
    builder = TraceBuilder().step(1, 0, 100)
    for begin, end in ((0, 50), (10, 30), (40, 60)):
        builder.span("gloo:all_reduce", begin, end, tid=GLOO, cat="user_annotation")
    events = merged(tmp_path, [builder])["traceEvents"]
    rows = {}
    for event in events:
        if event["name"] == "gloo:all_reduce":
            rows.setdefault(event["tid"], []).append((event["ts"], event["dur"]))
    assert sorted(rows.values()) == [[(0, 50)], [(10, 20), (40, 20)]]


def test_devices_and_arrows_of_ranks_are_kept_apart(tmp_path):
    traces = []
    for _ in range(2):
        builder = TraceBuilder().step(1, 0, 100).span("aten::mm", 0, 10)
        builder.span("gemm", 5, 20, tid=7, cat="kernel", pid=0)
        arrow = {"cat": "ac2g", "name": "ac2g", "id": 5, "ts": 5}
        builder.events.append({"ph": "s", "pid": PID, "tid": 1, **arrow})
        builder.events.append({"ph": "f", "pid": 0, "tid": 7, "bp": "e", **arrow})
        traces.append(builder)
    events = merged(tmp_path, traces)["traceEvents"]
    assert {event["pid"] for event in events if event["name"] == "gemm"} == {1001, 2001}
    arrows = [event for event in events if event["name"] == "ac2g"]
    assert len({event["id"] for event in arrows}) == 2 and len(arrows) == 4


def test_a_huge_trace_loses_python_frames_first(tmp_path, monkeypatch):
    monkeypatch.setattr(fragment, "MOST_EVENTS", 10)
    builder = TraceBuilder().step(1, 0, 100)
    for index in range(6):
        builder.span("aten::mm", index, index + 1)
        builder.span("train.py(3): f", index, index + 1, cat="python_function")
    trace = builder.write(tmp_path / "trace.json")
    own = order(tmp_path, trace)
    notes = digest.digest(own)["notes"]
    with gzip.open(own["fragment"], "rt") as file:
        text = file.read()
    assert text.count("aten::mm") == 6 and "train.py" not in text
    assert len(notes) == 1 and notes[0].startswith("6 Python frames")


def test_ranks_without_a_fragment_leave_valid_json(tmp_path):
    path = str(tmp_path / "merged.gz")
    merge.merge([], [], {}, path)
    with gzip.open(path) as file:
        assert json.load(file)["traceEvents"] == []


# ---- memory


def test_memory_by_category_is_thinned_and_keeps_its_peaks(tmp_path):
    trace = Trace(TraceBuilder().write(tmp_path / "trace.json"), ORIGIN_NS)
    count = 5000
    times = [ORIGIN_NS / 1000 + moment for moment in range(count)]
    sizes = [[0, 100, 0, 0, 0, 7, 0, 0, 0] for _ in range(count)]
    sizes[1234] = [0, 100, 0, 0, 0, 9_000_000, 0, 0, 3]
    path = tmp_path / "memory.json"
    path.write_text(json.dumps([times, sizes]))
    found = memory.points(str(path), trace, ORIGIN_NS)
    assert len(found["times_us"]) == memory.MOST_POINTS
    assert set(found["categories"]) == {"parameter", "activation", "unknown"}
    assert max(found["categories"]["activation"]) == 9_000_000
    at = found["categories"]["unknown"].index(3)
    assert found["times_us"][at] == pytest.approx(1234, abs=1)


def test_memory_without_categories_is_the_allocator_s_total(tmp_path):
    builder = TraceBuilder(base_us=5)
    for moment, total in ((2, 20), (1, 10), (3, -1)):
        args = {"Total Allocated": total, "Bytes": 1}
        builder.events.append(
            {"ph": "i", "name": "[memory]", "pid": PID, "tid": 1, "ts": moment, "args": args}
        )
    trace = Trace(builder.write(tmp_path / "trace.json"), ORIGIN_NS)
    found = memory.points(None, trace, ORIGIN_NS)
    assert found == {"times_us": [6, 7], "categories": {"allocated": [10, 20]}}
    empty = Trace(TraceBuilder().write(tmp_path / "empty.json"), ORIGIN_NS)
    assert memory.points(None, empty, ORIGIN_NS) is None


# ---- the record


def test_records_of_profiles_are_bounded_the_oldest_first():
    def record(number):
        steps = [{"step": 1, "note": "x" * 3000}]
        summary = {"what": "", "ranks": [{"rank": 0, "steps": steps}], "notes": []}
        memories = {"0": {"times_us": list(range(1000)), "categories": {}}}
        return {"id": number, "summary": summary, "memory": memories}

    records = [record(number) for number in range(30)]
    kept = json.loads(store.bounded(records))
    assert [one["id"] for one in kept] == list(range(10, 30)) and kept[0]["memory"]
    kept = json.loads(store.bounded(records, 100_000))
    assert len(kept) == 20 and not kept[0]["memory"] and kept[-1]["memory"]
    assert kept[0]["summary"]["ranks"][0]["steps"]
    kept = json.loads(store.bounded(records, 20_000))
    assert len(kept) == 20 and not kept[-1]["memory"]
    assert not kept[0]["summary"]["ranks"][0]["steps"] and kept[-1]["summary"]["ranks"][0]["steps"]
    assert [one["id"] for one in json.loads(store.bounded(records, 1000))][-1] == 29
    assert records[0]["memory"], "the records themselves stay"
