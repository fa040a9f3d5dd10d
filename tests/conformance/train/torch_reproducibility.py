# enable_reproducibility seeds torch and random alike on each rank.
# needs: torch
import importlib
import os
import random

import torch
from ray import train
from ray.train.torch import TorchTrainer, enable_reproducibility
from training import fit, note, notes, start


def loop():
    rank = train.get_context().get_world_rank()
    enable_reproducibility()
    first = torch.rand(3).tolist(), random.random()
    enable_reproducibility(seed=0)
    note(rank, f"default is 0 {first == (torch.rand(3).tolist(), random.random())}")
    enable_reproducibility(1)
    note(rank, f"other seed {first == (torch.rand(3).tolist(), random.random())}")
    note(rank, f"deterministic {torch.are_deterministic_algorithms_enabled()}")
    # Not torch.backends.cudnn: a function that names it cannot be pickled.
    cudnn = importlib.import_module("torch.backends.cudnn")
    note(rank, f"{cudnn.benchmark} {os.environ.get('CUBLAS_WORKSPACE_CONFIG')}")
    every = [None, None]
    torch.distributed.all_gather_object(every, first)
    note(rank, f"equal {every[0] == every[1]}")


start()
fit(loop, cls=TorchTrainer)
notes()
