# The functions of a worker raise outside a training function.
import ray
from conform import show
from ray import train
from ray.train import collective

for name in "get_context get_checkpoint get_all_reported_checkpoints get_preemption_info".split():
    show(name, getattr(train, name))
show("report", lambda: train.report({}))
show("shard", lambda: train.get_dataset_shard("x"))
show("barrier", collective.barrier)
show("broadcast", lambda: collective.broadcast_from_rank_zero(1))
show("started", ray.is_initialized)
