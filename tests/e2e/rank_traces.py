"""Reads the traces that torch.profiler has left in a run's ranks, and checks that all is there."""

import collections
import json
import re

# The form of the file names that tensorboard_trace_handler makes: host, process, nanoseconds.
NAME = re.compile(r"(?P<host>.+)_(?P<pid>\d+)\.\d+\.pt\.trace\.json")


class Trace:
    def __init__(self, path):
        self.path, self.pid = path, int(NAME.fullmatch(path.name)["pid"])
        self.whole = json.loads(path.read_text())
        self.group = self.whole["distributedInfo"]
        self.events = collections.defaultdict(list)
        for event in self.whole["traceEvents"]:
            self.events[event.get("cat")].append(event)

    def names(self, category):
        return {event["name"] for event in self.events[category]}


def read(directory, ranks):
    """Returns the traces in a directory by rank. There must be one for each rank, and each from
    another process."""
    traces = [Trace(path) for path in directory.iterdir()]
    by_rank = {trace.group["rank"]: trace for trace in traces}
    assert len(traces) == ranks and sorted(by_rank) == list(range(ranks)), by_rank
    assert len({trace.pid for trace in traces}) == ranks
    return by_rank


def check(trace, ranks, function):
    """Checks that a trace has its steps, operators with shapes, stacks down to this function,
    memory and communication."""
    whole, group = trace.whole, trace.group
    assert (whole["with_stack"], whole["profile_memory"], whole["record_shapes"]) == (1, 1, 1)
    assert (group["backend"], group["world_size"]) == ("gloo", ranks)
    assert any(set(one["ranks"]) == set(range(ranks)) for one in group["pg_config"]), group
    steps = {name for name in trace.names("user_annotation") if name.startswith("ProfilerStep")}
    assert steps == {"ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#4"}
    assert "gloo:all_reduce" in trace.names("user_annotation")
    convolutions = [event for event in trace.events["cpu_op"] if event["name"] == "aten::conv2d"]
    assert convolutions and all(event["args"]["Input Dims"][0][1:] for event in convolutions)
    assert any(function in name for name in trace.names("python_function")), "no stack of its own"
    freed = {event["args"]["Bytes"] < 0 for event in trace.events["cpu_instant_event"]}
    assert trace.names("cpu_instant_event") == {"[memory]"} and freed == {True, False}
    # All operators are in two threads: the one that trains, and the one in which PyTorch computes
    # gradients.
    main = {event["tid"] for event in trace.events["cpu_op"] if event["name"] == "aten::conv2d"}
    assert len(main) == 1
