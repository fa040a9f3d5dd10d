# prepare_data_loader with other samplers, streams of data, and its arguments.
# needs: torch
import torch
from ray import train
from ray.train.torch import TorchTrainer, prepare_data_loader
from torch.utils.data import (
    DataLoader,
    DistributedSampler,
    IterableDataset,
    SubsetRandomSampler,
    TensorDataset,
)
from training import fit, note, notes, start


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(4))


def loop():
    rank = train.get_context().get_world_rank()
    data = TensorDataset(torch.arange(8))

    def kind(loader):
        return f"{type(loader.sampler).__name__} {len(list(loader))}"

    note(
        rank,
        f"subset {kind(prepare_data_loader(DataLoader(data, sampler=SubsetRandomSampler([1, 2]))))}",
    )
    own = DistributedSampler(data, num_replicas=2, rank=rank, shuffle=False)
    loader = prepare_data_loader(DataLoader(data, sampler=own))
    note(rank, f"own {loader.sampler is own} {len(list(loader))}")
    stream = prepare_data_loader(DataLoader(Stream(), batch_size=2))
    note(rank, f"stream {[batch.tolist() for batch in stream]}")
    note(rank, f"no sampler {kind(prepare_data_loader(DataLoader(data), add_dist_sampler=False))}")
    plain = prepare_data_loader(DataLoader(data), move_to_device=False)
    note(rank, f"not moved {kind(plain)}")
    note(rank, f"no transfer {kind(prepare_data_loader(DataLoader(data), auto_transfer=False))}")
    twice = prepare_data_loader(prepare_data_loader(DataLoader(data)))
    note(rank, f"twice {kind(twice)}")


start()
fit(loop, cls=TorchTrainer)
notes()
