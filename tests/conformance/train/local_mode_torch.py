# Local mode with torch: devices, models and loaders stay as in one process.
# needs: torch
import torch
from conform import show
from ray.train import torch as train_torch
from ray.train.torch import TorchTrainer
from training import fit


def loop():
    show("device", train_torch.get_device)
    show("devices", train_torch.get_devices)
    show("model", lambda: type(train_torch.prepare_model(torch.nn.Linear(1, 1))).__name__)
    data = torch.utils.data.TensorDataset(torch.arange(6.0))
    loader = train_torch.prepare_data_loader(torch.utils.data.DataLoader(data, batch_size=4))
    show("loader", lambda: [batch[0].tolist() for batch in loader])
    show("group", torch.distributed.is_initialized)


fit(loop, 0, cls=TorchTrainer)
