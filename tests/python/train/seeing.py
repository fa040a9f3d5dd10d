"""Helpers of the tests that look at runs: a run in a thread, the HTTP interface, rayctl."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import threading
import urllib.request

from train_support import Gate

import ray
from ray import _raylet
from ray.train import RunConfig, ScalingConfig
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

RAYCTL = shutil.which("rayctl") or str(
    pathlib.Path(ray.__file__).resolve().parents[2] / "build" / "bin" / "rayctl"
)


def context():
    from ray._private.worker import global_worker

    return global_worker.context


def get(path):
    """Returns the JSON that the head's HTTP interface answers."""
    request = urllib.request.Request(
        f"http://{context()['dashboard_address']}{path}",
        headers={"Authorization": f"Bearer {_raylet.auth_token(False)}"},
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


def runs(name):
    return [run for run in get("/api/train/v2/runs/v1")["train_runs"] if run["name"] == name]


def rayctl(*words, over_http=False):
    """Runs rayctl; returns (exit code, stdout, stderr)."""
    address = context()["head_address"]
    if over_http:
        address = f"http://{context()['dashboard_address']}"
    done = subprocess.run(
        [RAYCTL, *words, f"--address={address}"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "NO_COLOR": "1"},
    )
    return done.returncode, done.stdout, done.stderr


def metrics_of(run_id):
    """Returns {name: {rank or state: value}} of the metrics of this run."""
    found = {}
    for line in rayctl("metrics")[1].splitlines():
        match = re.fullmatch(r"(ray_train_\w+)\{(.*)\} (\S+)", line)
        if match and f'ray_train_run_id="{run_id}"' in match[2]:
            tags = dict(re.findall(r'(\w+)="([^"]*)"', match[2]))
            key = tags.get("ray_train_worker_world_rank", tags.get("ray_train_controller_state"))
            found.setdefault(match[1], {})[key] = float(match[3])
    return found


class Background:
    """Runs fit() in a thread. The training function waits at a gate until go_on() takes the gate's
    last place, so that a test can look at the run meanwhile."""

    def __init__(self, function, path, name, places=3, trainer=DataParallelTrainer, **arguments):
        """`trainer` is the class to call; `arguments` are passed to RunConfig."""
        self.gate = ray.remote(Gate).options(num_cpus=0).remote(places)
        self.error = None
        self.trainer = trainer(
            function,
            train_loop_config={"gate": self.gate},
            scaling_config=ScalingConfig(num_workers=2),
            run_config=RunConfig(name=name, storage_path=str(path), **arguments),
        )
        self.thread = threading.Thread(target=self._fit)

    def _fit(self):
        try:
            self.trainer.fit()
        except Exception as error:
            self.error = error

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.go_on()
        self.thread.join(60)
        assert not self.thread.is_alive()

    def go_on(self):
        """Lets the function end."""
        ray.get(self.gate.arrive.remote())


def is_running(name):
    return [run["status"] for run in runs(name)] == ["RUNNING"]


def history(run_id):
    return get(f"/api/train/v2/runs/v1/{run_id}/metrics")
