"""Builds traces in the form of kineto for the tests of profiles."""

import json

PID, TRAINS, GLOO, BACKWARD = 4242, 1, 7, 9
ORIGIN_NS = 1_700_000_000_000_000_000


class TraceBuilder:
    """A trace of one rank whose base is `base_us` after the origin of the profile."""

    def __init__(self, base_us=0):
        self.base_us = base_us
        self.events = [
            {
                "ph": "M",
                "name": "process_name",
                "pid": PID,
                "tid": 0,
                "ts": 0,
                "args": {"name": "p"},
            },
            {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": 0}
            | {"ts": 0, "dur": 9000},
        ]

    def span(self, name, begin, end, tid=TRAINS, cat="cpu_op", pid=PID, **more):
        """Times in microseconds of the trace's own base."""
        event = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid}
        self.events.append({**event, "ts": begin, "dur": end - begin, **more})
        return self

    def step(self, number, begin, end):
        return self.span(f"ProfilerStep#{number}", begin, end, cat="user_annotation")

    def write(self, path, **more):
        content = {"baseTimeNanoseconds": ORIGIN_NS + self.base_us * 1000, **more}
        path.write_text(json.dumps({**content, "traceEvents": self.events}))
        return str(path)


def span(name, begin_us, end_us, is_training=True):
    """One of the run's own spans; times in microseconds after the origin."""
    return [name, ORIGIN_NS + begin_us * 1000, (end_us - begin_us) * 1000, is_training]


def order(tmp_path, trace, rank=0, spans=(), steps=(1,), **more):
    """What digest.digest() takes; steps: those that the recorder has recorded."""
    return {
        "rank": rank,
        "label": "a node",
        "trace": trace,
        "fragment": str(tmp_path / f"fragment{rank}.gz"),
        "memory": None,
        "origin_ns": ORIGIN_NS,
        "spans": list(spans),
        "boundaries": [[n, ORIGIN_NS, ORIGIN_NS] for n in steps],
        **more,
    }
