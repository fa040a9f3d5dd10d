# prepare_model and prepare_data_loader with one worker: nothing is wrapped or split.
# needs: torch
import torch
from ray.train.torch import TorchTrainer, prepare_data_loader, prepare_model
from torch.utils.data import DataLoader, TensorDataset
from training import fit, note, notes, start


def loop():
    model = torch.nn.Linear(1, 1)
    note("model", prepare_model(model) is model)
    note("model", prepare_model(model, parallel_strategy=None) is model)
    note("model", prepare_model(model, move_to_device=torch.device("cpu")) is model)
    loader = DataLoader(TensorDataset(torch.arange(6.0)), batch_size=4)
    prepared = prepare_data_loader(loader)
    note("loader", isinstance(prepared, DataLoader))
    note("sampler", type(prepared.sampler).__name__)
    note("batches", [batch[0].tolist() for batch in prepared])
    note("same", prepare_data_loader(loader, move_to_device=False) is loader)


start()
fit(loop, 1, cls=TorchTrainer)
notes()
