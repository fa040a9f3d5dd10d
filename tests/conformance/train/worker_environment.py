# The variables of a rank, and the actor that it is.
# needs: torch
import os

import ray
from ray import train
from ray.train.torch import TorchTrainer
from training import fit, note, notes, start

NAMES = "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK ACCELERATE_TORCH_DEVICE MINE".split()


def loop():
    rank = train.get_context().get_world_rank()
    for name in NAMES:
        note(rank, f"{name} {os.environ.get(name)}")
    note(rank, f"address {bool(os.environ['MASTER_ADDR'])} {os.environ['MASTER_PORT'].isdigit()}")
    context = ray.get_runtime_context()
    note(rank, f"actor {context.get_actor_id() is not None}")
    note(rank, f"resources {context.get_assigned_resources()}")
    note(rank, f"group {ray.util.get_current_placement_group() is not None}")


start()
fit(loop, cls=TorchTrainer, run={"worker_runtime_env": {"env_vars": {"MINE": "yes"}}})
notes()
