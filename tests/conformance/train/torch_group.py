# The process group of a TorchTrainer: there also for one worker, gloo without GPUs.
# needs: torch
import torch
import torch.distributed as dist
from ray import train
from ray.train.torch import TorchConfig, TorchTrainer, get_device, get_devices
from training import fit, note, notes, start


def loop():
    rank = train.get_context().get_world_rank()
    note(
        rank,
        f"{dist.is_initialized()} {dist.get_backend()} {dist.get_rank()} {dist.get_world_size()}",
    )
    value = torch.tensor([float(rank + 1)])
    dist.all_reduce(value)
    note(rank, f"sum {value.item()}")
    note(rank, f"{get_device()} {get_devices()}")


start()
fit(loop, 2, cls=TorchTrainer)
notes()
fit(loop, 1, cls=TorchTrainer, torch_config=TorchConfig(init_method="tcp"))
notes()
