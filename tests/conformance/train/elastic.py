# num_workers=(1, 3) on two CPUs starts with the two workers that fit.
from ray import train
from ray.train import ScalingConfig
from training import fit, note, notes, start


def loop():
    note(train.get_context().get_world_rank(), train.get_context().get_world_size())


start(cpus=2)
fit(loop, ScalingConfig(num_workers=(1, 3)))
notes()
