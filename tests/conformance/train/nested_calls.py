# Tasks and actors used inside a training function.
import ray
from conform import show
from ray import train
from training import fit, start


@ray.remote(num_cpus=0)
def double(value):
    return 2 * value


@ray.remote(num_cpus=0)
class Total:
    def __init__(self):
        self.value = 0

    def add(self, value):
        self.value += value
        return self.value


def loop(config):
    rank = train.get_context().get_world_rank()
    ray.get(config["total"].add.remote(rank + 1))
    return ray.get(double.remote(rank + 3)), ray.get(config["object"])


start()
total = Total.remote()
config = {"total": total, "object": ray.put([1, 2])}
show("value", lambda: fit(loop, 2, config=config).return_value)
show("total", lambda: ray.get(total.add.remote(0)))
