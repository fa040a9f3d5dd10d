# tqdm_ray yields the items it is given.
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)


def run():
    from ray.experimental.tqdm_ray import tqdm

    return list(tqdm(range(3), desc="x"))


show("values", run)
