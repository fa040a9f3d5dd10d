# A tensor in the value of a training function fails the run.
# needs: torch
import torch
from ray import train
from ray.train.torch import TorchTrainer
from training import fit, start


def loop():
    return {"a": [torch.ones(1)]}


start()
try:
    print(fit(loop, 1, cls=TorchTrainer).return_value)
except train.TrainingFailedError as error:
    print(
        type(error).__name__, {rank: type(e).__name__ for rank, e in error.worker_failures.items()}
    )
