"""Profiles with kineto: the tests of the recorder, and runs that are slow for a known reason.

It needs a newer torch than Debian's (make train-extras).
"""

import json
import os
import select
import time

import pytest
from profile_support import merged_events, profiles_of, train
from test_profile_recorder import *  # noqa: F403

from ray import _raylet
from ray.train import ProfileConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer

pytestmark = pytest.mark.train_extras

# This is so long that it stands out on a machine that is busy with other tests.
SLOW_S = 0.3


@pytest.fixture
def profile(train_cluster, tmp_path):
    """profile(act, **more of ProfileConfig) runs train() with it and returns the record."""

    def fit(act=None, **options):
        TorchTrainer(
            train,
            train_loop_config={"epochs": 1, "batches": 6, "act": act},
            scaling_config=ScalingConfig(num_workers=2),
            run_config=RunConfig(
                name="run", storage_path=str(tmp_path), profile=ProfileConfig(**options)
            ),
        ).fit()
        (record,) = profiles_of("run")
        assert record["status"] == "RECORDED", record["detail"]
        return record

    return fit


def dawdle():
    """Makes a step or a batch take long, without waiting for anything."""
    select.select([], [], [], SLOW_S)


def shares_of(record):
    """Returns rank -> the mean of each part of its steps, in seconds."""
    return {
        rank["rank"]: {
            part: sum(step[f"{part}_us"] for step in rank["steps"]) / len(rank["steps"]) / 1e6
            for part in ("compute", "communication", "data", "idle", "total")
        }
        for rank in record["summary"]["ranks"]
    }


def test_the_traces_have_everything(profile):
    record = profile()
    for one in record["ranks"]:
        with open(one["trace"]) as file:
            content = json.load(file)
        assert content["distributedInfo"]["rank"] == one["rank"]
        assert content["distributedInfo"]["world_size"] == 2
        events = content["traceEvents"]
        names = {event.get("name") for event in events}
        assert {"ProfilerStep#3", "ProfilerStep#4", "ProfilerStep#5", "gloo:all_reduce"} <= names
        assert "[memory]" in names and "ProfilerStep#2" not in names
        products = [event for event in events if event.get("name") == "aten::addmm"]
        assert all(event["args"]["Input Dims"] for event in products) and len(products) == 3
        assert any("profile_support.py" in (name or "") for name in names), "Python frames"
        with open(one["memory"]) as file:
            times, sizes = json.load(file)
        assert len(times) == len(sizes) > 3
        points = record["memory"][str(one["rank"])]
        assert points["categories"]["parameter"][-1] >= 17 * 4, "a weight and a bias of floats"
        assert len(points["times_us"]) == len(points["categories"]["parameter"])
    events = merged_events(record["trace"])
    steps = {
        (event["pid"], event["name"]): event["ts"]
        for event in events
        if event["name"].startswith("ProfilerStep#")
    }
    assert len(steps) == 6
    # All ranks end each step together, on one clock.
    assert abs(steps[1000, "ProfilerStep#5"] - steps[2000, "ProfilerStep#5"]) < 1e6


def test_a_rank_that_computes_longer_is_the_slow_one(profile):
    def compute(rank, batch):
        import torch

        end = time.monotonic() + SLOW_S
        while rank == 1 and time.monotonic() < end:
            torch.ones(1000, 1000) @ torch.ones(1000, 1000)

    record = profile(compute)
    found = shares_of(record)
    assert found[1]["compute"] > 0.6 * SLOW_S and found[0]["compute"] < 0.2 * SLOW_S
    assert found[0]["communication"] > 0.6 * SLOW_S > 2 * found[1]["communication"]
    assert record["summary"]["notes"][0].startswith("Rank 1 is slow: it computes for ")
    assert record["summary"]["ranks"][1]["operators"][0]["name"] in ("aten::mm", "aten::fill_")
    assert record["summary"]["ranks"][0]["operators"][0]["name"] == "gloo:all_reduce"


def test_a_rank_that_does_nothing_is_idle_and_the_slow_one(profile):
    record = profile(lambda rank, batch: dawdle() if rank == 0 else None)
    found = shares_of(record)
    assert found[0]["idle"] > 0.8 * SLOW_S and found[1]["communication"] > 0.6 * SLOW_S
    assert record["summary"]["notes"][0].startswith("Rank 0 is slow: it is idle for ")


def test_a_rank_that_waits_for_data_is_the_slow_one(train_cluster, tmp_path):
    def function():
        import torch
        from torch.utils.data import DataLoader, Dataset

        import ray.train
        from ray.train.torch import prepare_data_loader, prepare_model

        rank = ray.train.get_context().get_world_rank()

        class Slow(Dataset):
            def __len__(self):
                return 16

            def __getitem__(self, index):
                if rank == 1:
                    dawdle()
                return torch.ones(4)

        model = prepare_model(torch.nn.Linear(4, 1))
        for x in prepare_data_loader(DataLoader(Slow())):
            model(x).sum().backward()

    TorchTrainer(
        function,
        scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(name="data", storage_path=str(tmp_path), profile=True),
    ).fit()
    (record,) = profiles_of("data")
    found = shares_of(record)
    assert found[1]["data"] > 0.8 * SLOW_S and found[0]["data"] < 0.3 * SLOW_S
    assert found[0]["communication"] > 0.6 * SLOW_S
    notes = record["summary"]["notes"]
    assert notes[0].startswith("Rank 1 is slow: it waits for data for ")
    assert any(note.startswith("Rank 1 waits ") and "DataLoader" in note for note in notes)


def test_less_is_recorded_when_less_is_asked_for(profile):
    record = profile(with_stack=False, profile_memory=False, record_shapes=False, steps=1)
    (one, _) = record["ranks"]
    assert one["memory"] is None and record["memory"] == {}
    with open(one["trace"]) as file:
        events = json.load(file)["traceEvents"]
    assert not [event for event in events if event.get("cat") == "python_function"]
    assert not [event for event in events if event.get("name") == "[memory]"]
    assert all("Input Dims" not in event.get("args", {}) for event in events)


def test_another_file_system_has_the_same_files(train_cluster, tmp_path):
    fs = pytest.importorskip("pyarrow.fs")
    store = tmp_path / "store"
    store.mkdir()
    TorchTrainer(
        train,
        train_loop_config={"epochs": 1, "batches": 6},
        scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(
            name="run",
            storage_path="runs",
            storage_filesystem=fs.SubTreeFileSystem(str(store), fs.LocalFileSystem()),
            profile=True,
        ),
    ).fit()
    (record,) = profiles_of("run")
    assert record["status"] == "RECORDED" and record["path"].startswith("runs/run.profiles/")
    names = {one.name for one in (store / record["path"]).iterdir()}
    assert names == {
        "merged.trace.json.gz",
        "summary.json",
        "summary.txt",
        "rank0_memory.json",
        "rank1_memory.json",
        *(os.path.basename(one["trace"]) for one in record["ranks"]),
    }
    session = _raylet.context()["session_dir"]
    assert not [name for name in os.listdir(session) if name.startswith("profile-")]


def test_tensorboard_s_plugin_reads_the_folder(profile):
    loader = pytest.importorskip("torch_tb_profiler.profiler.loader")
    from torch_tb_profiler.io.cache import Cache

    record = profile()
    names = [os.path.basename(one["trace"]) for one in record["ranks"]]
    found = loader.RunLoader("run", record["path"], Cache()).load()
    # The plug-in shows "All" as its view of a distributed run, for which it must match the ranks'
    # collectives.
    assert sorted(found.workers) == ["All", *sorted(name.split(".")[0] for name in names)]
