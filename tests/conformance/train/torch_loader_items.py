# Batches of a prepared loader: tuples, lists, dicts, texts, empty loaders, a loop left early.
# needs: torch
import torch
from ray.train.torch import TorchTrainer, prepare_data_loader
from torch.utils.data import DataLoader, TensorDataset
from training import fit, note, notes, start


def items(data, **options):
    return list(prepare_data_loader(DataLoader(data, **options)))


def loop():
    note("pairs", items([(1, 2.0), (3, 4.0)], batch_size=2))
    note("dicts", items([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], batch_size=2))
    note("texts", items(["x", "y"], batch_size=2))
    note("nested", items([{"a": (1, [2, 3])}]))
    note("numbers", items([1, 2], collate_fn=lambda batch: batch))
    note("empty", items([]))
    loader = prepare_data_loader(DataLoader(TensorDataset(torch.arange(4))))
    for batch in loader:
        note("early", batch)
        break
    note("whole", [batch[0].tolist() for batch in loader])
    note("length", len(loader))


start()
fit(loop, 1, cls=TorchTrainer)
notes()
