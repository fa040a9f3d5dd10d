"""A stand-in for the controller of a training run: an actor that records a run and offers the
command train_profile, so that tests of profile requests need no PyTorch."""

import gzip
import json
import os
import time

from waiting import wait_for

import ray
from ray import _raylet

OPERATORS = [
    {"name": "aten::addmm", "total_us": 900.0, "count": 6},
    {"name": "gloo:all_reduce", "total_us": 400.0, "count": 3},
]


def summary(ranks, steps):
    """Makes a summary of the form that python/ray/train/profiles makes."""
    parts = {"compute_us": 600.0, "communication_us": 200.0, "data_us": 150.0, "idle_us": 50.0}
    return {
        "what": f"{steps} steps of {len(ranks)} ranks",
        "ranks": [
            {
                "rank": rank,
                "node": "127.0.0.1",
                "pid": 4000 + rank,
                "steps": [
                    {"step": step, "report_us": 10.0, "total_us": 1000.0, "operators": OPERATORS}
                    | parts
                    for step in range(5, 5 + steps)
                ],
                "operators": OPERATORS,
            }
            for rank in ranks
        ],
        "notes": ["Rank 1 is slow: it computes for <b>long</b>."],
    }


class Defect(Exception):
    """An error that is not meant for users."""


@ray.remote(num_cpus=0)
class Controller:
    """A controller whose answer depends on the number of steps in the request: see answer()."""

    def __init__(self, name, run_id, folder, offers=True):
        self.run_id, self.folder, self.profiles = run_id, folder, []
        context = ray.get_runtime_context()
        self.node_id = context.get_node_id()
        self.run = {
            "id": run_id,
            "name": name,
            "job_id": context.get_job_id(),
            "controller_actor_id": context.get_actor_id(),
            "status": "RUNNING",
            "status_detail": None,
            "start_time_ns": time.time_ns(),
            "end_time_ns": None,
            "controller_node_id": None,
            "controller_log_file_path": None,
            "framework_versions": {},
            "run_settings": {},
            "attempts": [],
        }
        self.write()
        if offers:
            _raylet.set_command("train_profile", self.answer)

    def write(self, **fields):
        self.run.update(fields)
        _raylet.kv_put(b"train_runs", self.run_id.encode(), json.dumps(self.run).encode(), True)

    def pid(self):
        return os.getpid()

    def answer(self, text):
        """5 steps: waits for the file `go`. 404, 500 and 600 steps: raises an error of each
        kind."""
        request = json.loads(text)
        if request.get("steps") == 404:
            raise ValueError("the run has no rank 9: its ranks are 0 to 1")
        if request.get("steps") == 500:
            raise RuntimeError("another profile is under way")
        if request.get("steps") == 600:
            raise Defect("of a program")
        if request.get("steps") == 5:
            open(f"{self.folder}/waits", "w").close()
            wait_for(f"{self.folder}/go")
        return json.dumps({**self.record(request), "request": request}).encode()

    def record(self, request):
        """Records a profile of two ranks, and returns what the command answers."""
        steps = request.get("steps", 3)
        name = f"profile_{len(self.profiles) + 1}"
        path = f"{self.folder}/run.profiles/{name}"
        os.makedirs(path)
        trace = gzip.compress(json.dumps({"traceEvents": [{"name": "step"}] * 1000}).encode())
        logs = f"{_raylet.context()['session_dir']}/logs/train"
        os.makedirs(logs, exist_ok=True)
        log_file = f"{self.run_id}_{name}.trace.json.gz"
        for file in (f"{path}/merged.trace.json.gz", f"{logs}/{log_file}"):
            with open(file, "wb") as out:
                out.write(trace)
        ranks = [
            {"rank": rank, "node_id": self.node_id, "pid": 4000 + rank, "status": status}
            | {"detail": detail, "trace": None, "memory": None}
            for rank, status, detail in ((0, "RECORDED", None), (1, "FAILED", "it has ended"))
        ]
        self.profiles.append(
            {
                "id": name,
                "status": "RECORDED",
                "detail": "rank 1: it has ended",
                "time_ns": time.time_ns(),
                "path": path,
                "trace": f"{path}/merged.trace.json.gz",
                "log_file": f"train/{log_file}",
                "node_id": self.node_id,
                "steps": steps,
                "ranks": ranks,
                "summary": summary([0, 1], steps),
                "memory": {
                    "0": {
                        "times_us": [0.0, 500.0, 1000.0],
                        "categories": {
                            "parameter": [4096, 4096, 4096],
                            "activation": [0, 1 << 20, 4096],
                        },
                    }
                },
            }
        )
        key, records = self.run_id.encode(), json.dumps(self.profiles).encode()
        _raylet.kv_put(b"train_profiles", key, records, True)
        text = "Profile: where the time went.\n  rank 0  1.0 ms\n"
        return {
            "id": name,
            "path": path,
            "trace": f"{path}/merged.trace.json.gz",
            "summary": text,
            "ranks": ranks,
        }
