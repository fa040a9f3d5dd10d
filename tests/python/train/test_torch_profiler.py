"""torch.profiler in a training function: the files that it leaves for each rank, in every format.

The programs of the users' document do the same with a larger model (tests/e2e).
"""

import gzip
import json

import pytest

pytestmark = pytest.mark.train_extras
FORMATS = ("html", "json", "json.gz", "raw.json.gz")


def profiled(config):
    """Eight steps in this thread, three of them recorded; then the memory in each format."""
    import torch
    from torch import nn, profiler

    import ray.train
    from ray.train.torch import prepare_model

    context = ray.train.get_context()
    rank = context.get_world_rank()
    model = prepare_model(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)))
    with profiler.profile(
        schedule=profiler.schedule(wait=1, warmup=1, active=3, repeat=1),
        on_trace_ready=profiler.tensorboard_trace_handler(f"{config['path']}/logs"),
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
    ) as recorded:
        for _ in range(config["steps"]):
            with profiler.record_function("forward"):
                loss = model(torch.ones(8, 64)).sum()
            loss.backward()
            recorded.step()
    run_folder = f"{config['path']}/{context.get_experiment_name()}"
    for suffix in config.get("formats", ()):
        recorded.export_memory_timeline(f"{run_folder}/rank{rank}.{suffix}", device="cpu")
    return recorded.step_num


@pytest.fixture
def run(train_cluster, tmp_path):
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    def fit(**config):
        return TorchTrainer(
            profiled,
            train_loop_config={"path": str(tmp_path), **config},
            scaling_config=ScalingConfig(num_workers=2),
            run_config=RunConfig(name="run", storage_path=str(tmp_path)),
        ).fit()

    return fit


def traces(path):
    by_rank = {}
    for file in (path / "logs").glob("*.pt.trace.json"):
        trace = json.loads(file.read_text())
        by_rank[trace["distributedInfo"]["rank"]] = trace
    return by_rank


def test_a_trace_and_memory_in_every_format(run, tmp_path):
    assert run(steps=8, formats=FORMATS).return_value == 8
    by_rank = traces(tmp_path)
    assert sorted(by_rank) == [0, 1]
    for trace in by_rank.values():
        assert trace["distributedInfo"]["world_size"] == 2
        names = [event["name"] for event in trace["traceEvents"]]
        assert names.count("forward") == 3 and "gloo:all_reduce" in names
        shapes = [
            event["args"].get("Input Dims")
            for event in trace["traceEvents"]
            if event["name"] == "aten::linear"
        ]
        assert shapes and shapes[0][0] == [8, 64]
    for rank in (0, 1):
        html, plain, packed, raw = (tmp_path / "run" / f"rank{rank}.{one}" for one in FORMATS)
        assert "data:image/png;base64," in html.read_text()
        times, sizes = json.loads(plain.read_text())
        assert len(times) == len(sizes) > 10 and times == sorted(times)
        assert max(sum(categories) for categories in sizes) > 64 * 64 * 4
        assert json.loads(gzip.decompress(packed.read_bytes())) == [times, sizes]
        events = json.loads(gzip.decompress(raw.read_bytes()))
        assert len(events) > 10 and all(len(event) == 4 for event in events)


def test_too_few_steps_leave_no_whole_trace(run, tmp_path):
    assert run(steps=3).return_value == 3
    for trace in traces(tmp_path).values():
        steps = {event["name"] for event in trace["traceEvents"] if "ProfilerStep" in event["name"]}
        assert steps <= {"ProfilerStep#2", "ProfilerStep#3"}
