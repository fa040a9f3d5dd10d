# The functions of ray.train.torch outside a training function, and the removed ones.
# needs: torch
import ray
import torch
from conform import show
from ray.train import torch as train_torch

model = torch.nn.Linear(1, 1)
loader = torch.utils.data.DataLoader([1, 2])
show("device", train_torch.get_device)
show("devices", train_torch.get_devices)
show("model", lambda: train_torch.prepare_model(model))
show("loader", lambda: train_torch.prepare_data_loader(loader))
show("accelerate", train_torch.accelerate, "accelerate")
show("accelerate(amp)", lambda: train_torch.accelerate(amp=True))
show("backward", lambda: train_torch.backward(torch.ones(1)), "backward")
show("optimizer", lambda: train_torch.prepare_optimizer(None), "prepare_optimizer")
show("reproducible", train_torch.enable_reproducibility)
