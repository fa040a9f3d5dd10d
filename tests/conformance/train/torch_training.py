# A small training of two ranks: equal weights at the end, and resumed from its checkpoint.
# needs: torch
import os
import tempfile

import torch
from conform import show
from ray import train
from ray.train import Checkpoint, FailureConfig
from ray.train.torch import TorchTrainer, prepare_data_loader, prepare_model
from torch.utils.data import DataLoader, TensorDataset
from training import fit, listing, note, notes, start


def loop(config):
    rank = train.get_context().get_world_rank()
    torch.manual_seed(0)
    inputs = torch.linspace(-1, 1, 32).unsqueeze(1)
    loader = prepare_data_loader(DataLoader(TensorDataset(inputs, 3 * inputs + 1), batch_size=4))
    model = prepare_model(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    first, saved = 0, train.get_checkpoint()
    if saved:
        with saved.as_directory() as path:
            state = torch.load(os.path.join(path, f"model{rank}.pt"))
        model.load_state_dict(state["model"])
        first = state["epoch"] + 1
    note(rank, f"from epoch {first}")
    for epoch in range(first, config["epochs"]):
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with tempfile.TemporaryDirectory() as path:
            torch.save(
                {"model": model.state_dict(), "epoch": epoch}, os.path.join(path, f"model{rank}.pt")
            )
            train.report(
                {"loss": loss.item(), "epoch": epoch},
                checkpoint=Checkpoint.from_directory(path),
                checkpoint_dir_name=f"epoch{epoch}",
            )
        if epoch == 2 and first == 0:
            train.get_all_reported_checkpoints()
            raise ValueError("fails once")
    return [round(value, 2) for value in model.state_dict()["module.weight"].flatten().tolist()]


start()
result = fit(
    loop,
    config={"epochs": 8},
    cls=TorchTrainer,
    run={"failure_config": FailureConfig(max_failures=1)},
)
notes()
show("weights", lambda: result.return_value)
show("learned", lambda: result.metrics["loss"] < 0.001)
show("epoch", lambda: result.metrics["epoch"])
show("files", lambda: listing("run", "epoch7"))
