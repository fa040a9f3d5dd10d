# prepare_data_loader gives each rank its part: sampler, shuffling, batch size, attributes.
# needs: torch
import torch
from ray import train
from ray.train.torch import TorchTrainer, prepare_data_loader
from torch.utils.data import DataLoader, TensorDataset
from training import fit, note, notes, start


def loop():
    rank = train.get_context().get_world_rank()
    data = TensorDataset(torch.arange(10))

    def batches(loader):
        return [batch[0].tolist() for batch in loader]

    for label, options in {
        "plain": {},
        "batches": {"batch_size": 2},
        "drop_last": {"batch_size": 2, "drop_last": True},
    }.items():
        loader = prepare_data_loader(DataLoader(data, **options))
        sampler = loader.sampler
        note(rank, f"{label} {type(sampler).__name__} {sampler.shuffle} {sampler.drop_last}")
        note(
            rank, f"{label} {len(loader)} {loader.batch_size} {loader.drop_last} {batches(loader)}"
        )
        note(
            rank,
            f"{label} {loader.dataset is data} {loader.num_workers} {isinstance(loader, DataLoader)}",
        )
    loader = prepare_data_loader(DataLoader(data, shuffle=True))
    note(
        rank,
        f"shuffle {loader.sampler.shuffle} {loader.sampler.num_replicas} {loader.sampler.rank == rank}",
    )
    loader.sampler.set_epoch(0)
    first, again = batches(loader), batches(loader)
    loader.sampler.set_epoch(1)
    note(rank, f"epochs {first == again} {first == batches(loader)}")
    every = [None, None]
    torch.distributed.all_gather_object(every, sum(first, []))
    note(rank, f"all {sorted(every[0] + every[1])}")


start()
fit(loop, cls=TorchTrainer)
notes()
