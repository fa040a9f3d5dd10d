"""Runs of TorchTrainer on a small cluster: process groups, wrapped models, divided loaders."""

import time

import pytest

pytest.importorskip("torch")

from gate import Gate

import ray
from ray.train import ControllerError, RunConfig, ScalingConfig, WorkerGroupError
from ray.train.torch import TorchConfig, TorchTrainer
from ray.train.torch.config import _values


@pytest.fixture
def run(train_cluster, tmp_path):
    """run(function, workers=2, config=None, **options of TorchConfig) trains to a Result."""

    def fit(function, workers=2, config=None, name="run", **options):
        return TorchTrainer(
            function,
            train_loop_config=config,
            torch_config=TorchConfig(**options),
            scaling_config=ScalingConfig(num_workers=workers),
            run_config=RunConfig(name=name, storage_path=str(tmp_path)),
        ).fit()

    return fit


def train(config):
    """Learns y = 3x; what every rank saw is in the files of the last checkpoint."""
    import os
    import tempfile

    import torch
    from torch.utils.data import DataLoader, TensorDataset

    import ray.train
    from ray.train import torch as train_torch

    train_torch.enable_reproducibility(1)
    context = ray.train.get_context()
    rank, world_size = context.get_world_rank(), context.get_world_size()
    model = train_torch.prepare_model(torch.nn.Linear(1, 1, bias=False))
    inputs = torch.linspace(0, 1, 40)[:, None]
    loader = DataLoader(TensorDataset(inputs, 3 * inputs), batch_size=10, shuffle=True)
    loader = train_torch.prepare_data_loader(loader)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for epoch in range(config["epochs"]):
        if world_size > 1:
            loader.sampler.set_epoch(epoch)
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with tempfile.TemporaryDirectory() as directory:
            torch.save(model.state_dict(), os.path.join(directory, f"rank{rank}.pt"))
            ray.train.report(
                {"loss": loss.item(), "epoch": epoch},
                checkpoint=ray.train.Checkpoint.from_directory(directory),
            )
    return len(loader)


def test_ranks_learn_together(run):
    import torch

    result = run(train, config={"epochs": 8})
    assert result.metrics["epoch"] == 7 and result.metrics["loss"] < 0.01
    assert result.return_value == 2
    with result.checkpoint.as_directory() as directory:
        states = [torch.load(f"{directory}/rank{rank}.pt") for rank in (0, 1)]
    assert set(states[0]) == {"module.weight"}
    assert torch.equal(states[0]["module.weight"], states[1]["module.weight"])
    assert states[0]["module.weight"].item() == pytest.approx(3, abs=0.2)


def test_one_worker_is_not_wrapped(run):
    import torch

    result = run(train, workers=1, config={"epochs": 1})
    assert result.return_value == 4
    assert set(torch.load(f"{result.checkpoint.path}/rank0.pt")) == {"weight"}


@pytest.mark.parametrize("method", ["env", "tcp"])
def test_what_a_worker_sees(run, method):
    def look():
        import os

        import torch

        names = (
            "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK ACCELERATE_TORCH_DEVICE "
            "MASTER_ADDR MASTER_PORT GLOO_SOCKET_IFNAME OMP_NUM_THREADS"
        ).split()
        group = torch.distributed
        ranks = [None] * group.get_world_size()
        group.all_gather_object(ranks, group.get_rank())
        seen = {name: os.environ[name] for name in names if name in os.environ}
        return seen, group.get_backend(), ranks, torch.get_num_threads()

    seen, backend, ranks, threads = run(look, init_method=method).return_value
    assert backend == "gloo" and ranks == [0, 1] and threads == int(seen["OMP_NUM_THREADS"])
    assert seen["RANK"] == "0" and seen["WORLD_SIZE"] == seen["LOCAL_WORLD_SIZE"] == "2"
    assert seen["ACCELERATE_TORCH_DEVICE"] == "cpu" and "GLOO_SOCKET_IFNAME" in seen
    assert ("MASTER_ADDR" in seen) == ("MASTER_PORT" in seen) == (method == "env")


def test_a_group_of_one_exists_too(run):
    def look():
        import torch

        return torch.distributed.is_initialized(), torch.distributed.get_world_size()

    assert run(look, workers=1).return_value == (True, 1)


@pytest.mark.parametrize("options", [{"init_method": "file"}, {"backend": "nonsense"}])
def test_a_group_that_cannot_be_made_is_an_error_of_the_controller(run, options):
    with pytest.raises(ControllerError, match=next(iter(options.values()))) as raised:
        run(lambda: None, **options)
    assert isinstance(raised.value.controller_failure, (ValueError, AttributeError, RuntimeError))


def test_an_exception_of_a_rank_ends_the_others(run):
    """The other rank waits in a collective; the error comes without its timeout."""

    def fail():
        import torch

        import ray.train

        if ray.train.get_context().get_world_rank() == 1:
            raise ValueError("the data is broken")
        torch.distributed.barrier()

    begin = time.monotonic()
    with pytest.raises(WorkerGroupError, match="the data is broken") as raised:
        run(fail)
    assert time.monotonic() - begin < 600
    assert isinstance(raised.value.worker_failures[1], ValueError)


def test_a_tensor_as_return_value_fails_the_run(run):
    def give():
        import torch

        return {"deep": [torch.ones(1)]}

    with pytest.raises(WorkerGroupError, match="ensor"):
        run(give)


def test_the_first_error_of_a_group_is_raised_although_others_wait(train_cluster):
    @ray.remote(num_cpus=0)
    def fail():
        raise KeyError("rank 1")

    gate = Gate.remote()
    waiting = gate.wait.remote()
    with pytest.raises(KeyError):
        _values([waiting, fail.remote()])
    ray.get(gate.open.remote())
    assert _values([waiting]) == [None]
