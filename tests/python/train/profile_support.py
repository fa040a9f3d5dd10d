"""Shared by the tests of profiles: traces in kineto's form, and a run that trains."""

import gzip
import json
import threading
import urllib.error
import urllib.request

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
    """Returns one of the run's own spans; times in microseconds after the origin."""
    return [name, ORIGIN_NS + begin_us * 1000, (end_us - begin_us) * 1000, is_training]


def order(tmp_path, trace, rank=0, spans=(), steps=(1,), **more):
    """Returns the argument of digest.digest(). steps: the steps that the recorder has recorded."""
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


def train(config):
    """Trains in batches: config has epochs, batches (of an epoch) and may have act(rank, batch),
    which is called for every batch, and stop, the path of a file after which no epoch begins."""
    import os

    import torch
    from torch.utils.data import DataLoader, TensorDataset

    import ray.train
    from ray.train import collective
    from ray.train.torch import prepare_data_loader, prepare_model

    context = ray.train.get_context()
    model = prepare_model(torch.nn.Linear(16, 1))
    count = config["batches"] * 4 * context.get_world_size()
    data = TensorDataset(torch.randn(count, 16), torch.randn(count, 1))
    loader = prepare_data_loader(DataLoader(data, batch_size=4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = 0
    stop = config.get("stop")
    for epoch in range(config["epochs"]):
        if stop and collective.broadcast_from_rank_zero(os.path.exists(stop)):
            return
        for x, y in loader:
            batch += 1
            if config.get("act") is not None:
                config["act"](context.get_world_rank(), batch)
            loss = torch.nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        ray.train.report({"epoch": epoch})


def profiles_of(name):
    """Returns the records of the profiles of the newest run of this name, as the store has them."""
    from ray import _raylet

    found = []
    for key in _raylet.kv_list(b"train_runs", b""):
        run = json.loads(_raylet.kv_get(b"train_runs", key))
        if run["name"] == name:
            found.append((run["start_time_ns"], key))
    text = _raylet.kv_get(b"train_profiles", max(found)[1])
    return json.loads(text) if text is not None else []


def merged_events(path):
    """Returns the events of a merged trace."""
    with gzip.open(path) as file:
        return json.load(file)["traceEvents"]


class UnderWay:
    """A run of train() in a thread, whose epochs go on until the block has ended.

    `name` is the run's, whose folder is in `path`; `error` is what fit() has raised, or None.
    """

    def __init__(self, path, name="run", act=None, workers=2, batches=5, **more):
        """`more` is passed to RunConfig."""
        from ray.train import RunConfig, ScalingConfig
        from ray.train.torch import TorchTrainer

        self.name, self.error = name, None
        self._stop = str(path / "stop")
        self.trainer = TorchTrainer(
            train,
            train_loop_config={
                "epochs": 10**9,
                "batches": batches,
                "act": act,
                "stop": self._stop,
            },
            scaling_config=ScalingConfig(num_workers=workers),
            run_config=RunConfig(name=name, storage_path=str(path), **more),
        )
        self._thread = threading.Thread(target=self._fit)

    def _fit(self):
        try:
            self.trainer.fit()
        except Exception as error:
            self.error = error

    def __enter__(self):
        from waiting import until

        self._thread.start()
        until(lambda: self.error or self._is_running())
        assert self.error is None, self.error
        return self

    def _is_running(self):
        run = self.run()
        return run is not None and run["status"] == "RUNNING"

    def __exit__(self, *_):
        self.stop()
        self._thread.join(120)
        assert not self._thread.is_alive()

    def stop(self):
        open(self._stop, "w").close()

    def run(self):
        """The record of the run; None before there is one."""
        found = http("/api/train/v2/runs/v1")["train_runs"]
        return next((run for run in found if run["name"] == self.name), None)

    def profile(self, **request):
        """Requests a profile over HTTP; returns (status, answer)."""
        path = f"/api/train/v2/runs/v1/{self.run()['id']}/profile"
        try:
            return 200, http(path, request)
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


def http(path, request=None):
    """Returns the JSON that the head answers. A request is sent as the JSON of a POST."""
    from ray import _raylet
    from ray._private.worker import global_worker

    asked = urllib.request.Request(
        f"http://{global_worker.context['dashboard_address']}{path}",
        data=None if request is None else json.dumps(request).encode(),
        headers={
            "Authorization": f"Bearer {_raylet.auth_token(False)}",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(asked, timeout=120) as answer:
        return json.load(answer)
