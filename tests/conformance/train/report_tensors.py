# Tensors and modules in metrics are refused on their rank, before the others are waited for.
# needs: torch
import torch
from conform import show
from ray import train
from training import fit, note, notes, start


def loop():
    rank = train.get_context().get_world_rank()
    if rank == 0:
        for label, value in {
            "tensor": torch.ones(1),
            "list": [torch.ones(1)],
            "tuple": (1, (torch.ones(1),)),
            "dict": {"a": {"b": torch.ones(1)}},
            "module": torch.nn.Linear(1, 1),
            "number": torch.ones(1).item(),
        }.items():
            try:
                if label != "number":
                    train.report({"value": value})
            except Exception as error:
                note(label, f"{type(error).__name__} {'tensor' in str(error).lower()}")
    note(rank, train.report({"value": 1}))


start()
fit(loop)
notes()
