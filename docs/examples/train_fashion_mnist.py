"""Trains a small network on FashionMNIST on several workers; with --profile, records a few steps.

python train_fashion_mnist.py --data DIRECTORY [--storage DIRECTORY] [--name NAME]
    [--workers N] [--epochs N] [--profile]

A run with the name and storage of an earlier one goes on where that ended. --profile needs
PyTorch 2.1 or newer, and matplotlib for the pages that show memory.
"""

import argparse
import contextlib
import os
import tempfile

import torch
import torch.distributed
from torch import nn, profiler
from torch.utils.data import DataLoader
from torchvision.datasets import FashionMNIST
from torchvision.transforms import ToTensor

import ray.train
from ray.train import Checkpoint, CheckpointConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer, prepare_data_loader, prepare_model


def make_network():
    return nn.Sequential(
        nn.Conv2d(1, 16, kernel_size=3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, kernel_size=3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 10),
    )


def make_loader(config, train):
    # "train" or "test" images; each rank gets its own part of them.
    images = FashionMNIST(config["data"], train=train, download=True, transform=ToTensor())
    return prepare_data_loader(DataLoader(images, batch_size=64, shuffle=train))


def make_profiler(config):
    """Records steps 2, 3 and 4, after one that is left out and one that warms up."""
    if not config["profile"]:
        return contextlib.nullcontext()
    return profiler.profile(
        schedule=profiler.schedule(wait=1, warmup=1, active=3, repeat=1),
        on_trace_ready=profiler.tensorboard_trace_handler(f"{config['storage']}/logs/example"),
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
    )


def accuracy(model, loader):
    right = torch.zeros(2)
    with torch.no_grad():
        for images, labels in loader:
            hits = model(images).argmax(1) == labels
            right += torch.tensor([hits.sum(), len(hits)]).cpu()
    if torch.distributed.is_initialized():  # The ranks have looked at different images.
        torch.distributed.all_reduce(right)
    return (right[0] / right[1]).item()


def train(config):
    context = ray.train.get_context()
    rank = context.get_world_rank()
    network, first_epoch = make_network(), 0
    checkpoint = ray.train.get_checkpoint()
    if checkpoint:
        with checkpoint.as_directory() as folder:
            saved = torch.load(os.path.join(folder, "state.pt"), map_location="cpu")
        network.load_state_dict(saved["network"])
        first_epoch = saved["epoch"] + 1
    model = prepare_model(network)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
    loader, test_loader = make_loader(config, train=True), make_loader(config, train=False)

    with make_profiler(config) as recorded:
        for epoch in range(first_epoch, config["epochs"]):
            if context.get_world_size() > 1:
                loader.sampler.set_epoch(epoch)  # Other parts, in another order.
            for images, labels in loader:
                with profiler.record_function("forward_pass"):
                    loss = nn.functional.cross_entropy(model(images), labels)
                with profiler.record_function("backward_pass"):
                    optimizer.zero_grad()
                    loss.backward()
                with profiler.record_function("optimizer_step"):
                    optimizer.step()
                if recorded:
                    recorded.step()
            metrics = {
                "loss": loss.item(),
                "accuracy": accuracy(model, test_loader),
                "epoch": epoch,
            }
            with tempfile.TemporaryDirectory() as folder:
                if rank == 0:
                    state = {"network": network.state_dict(), "epoch": epoch}
                    torch.save(state, os.path.join(folder, "state.pt"))
                ray.train.report(metrics, checkpoint=Checkpoint.from_directory(folder))
            if rank == 0:
                print(f"Epoch {epoch}: accuracy {metrics['accuracy']:.3f}")

    if recorded:
        run_folder = os.path.join(config["storage"], context.get_experiment_name())
        recorded.export_memory_timeline(f"{run_folder}/rank{rank}_memory.html", device="cpu")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="where torchvision keeps FashionMNIST")
    parser.add_argument("--storage", default=os.path.expanduser("~/ray_results"))
    parser.add_argument("--name", default="fashion")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--profile", action="store_true", help="one trace a rank, in logs/example")
    options = vars(parser.parse_args())
    # The workers have working directories of their own.
    options.update({name: os.path.abspath(options[name]) for name in ("data", "storage")})

    result = TorchTrainer(
        train,
        train_loop_config=options,
        scaling_config=ScalingConfig(num_workers=options["workers"]),
        run_config=RunConfig(
            name=options["name"],
            storage_path=options["storage"],
            checkpoint_config=CheckpointConfig(num_to_keep=2),
        ),
    ).fit()
    print(f"accuracy {result.metrics['accuracy']:.3f}, kept in {result.checkpoint.path}")


if __name__ == "__main__":
    main()
