# resources_per_worker is what each worker holds; the controller holds none.
import ray
from ray import train
from ray.train import ScalingConfig
from training import fit, note, notes

ray.init(num_cpus=2, resources={"x": 2}, include_dashboard=False)


def loop():
    rank = train.get_context().get_world_rank()
    assigned = ray.get_runtime_context().get_assigned_resources()
    note(rank, sorted(assigned.items()))
    train.collective.barrier()
    note(rank, sorted((k, v) for k, v in ray.available_resources().items() if k in ("CPU", "x")))
    train.collective.barrier()


import ray.train.collective

fit(loop, ScalingConfig(num_workers=2, resources_per_worker={"CPU": 1, "x": 0.5}))
notes()
