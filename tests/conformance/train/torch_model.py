# prepare_model wraps in DistributedDataParallel on several ranks: equal weights and gradients.
# needs: torch
import torch
from conform import show
from ray import train
from ray.train.torch import TorchTrainer, prepare_model
from training import fit, note, notes, start


def loop():
    rank = train.get_context().get_world_rank()
    torch.manual_seed(rank)
    model = torch.nn.Linear(2, 1)
    prepared = prepare_model(model)
    note(rank, f"{type(prepared).__name__} {prepared.module is model}")
    note(rank, sorted(prepared.state_dict()))
    prepared(torch.full((1, 2), float(rank))).sum().backward()
    note(rank, f"gradient {model.weight.grad.tolist()}")
    note(rank, f"devices {prepared.device_ids}")
    weights = [torch.zeros(1, 2) for _ in range(2)]
    torch.distributed.all_gather(weights, model.weight.detach())
    note(rank, f"equal {torch.equal(*weights)}")
    options = {"find_unused_parameters": True}
    found = prepare_model(torch.nn.Linear(1, 1), parallel_strategy_kwargs=options)
    note(rank, f"kwargs {found.find_unused_parameters}")
    plain = torch.nn.Linear(1, 1)
    note(rank, f"None {prepare_model(plain, parallel_strategy=None) is plain}")
    note(rank, f"not moved {type(prepare_model(plain, move_to_device=False)).__name__}")
    try:
        prepare_model(torch.nn.Linear(1, 1), parallel_strategy="fsdp")
    except RuntimeError:
        note(rank, "fsdp needs CUDA")


start()
fit(loop, cls=TorchTrainer)
notes()
