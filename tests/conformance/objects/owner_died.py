# Readers of an object whose owner has died get OwnerDiedError.
import time
import ray
from conform import show


@ray.remote
class Maker:
    def make(self):
        return [ray.put(bytes(1_000_000))]


ray.init(num_cpus=1, include_dashboard=False)
maker = Maker.remote()
(ref,) = ray.get(maker.make.remote())
show("alive", lambda: len(ray.get(ref)))
(ref,) = ray.get(maker.make.remote())
ray.kill(maker)
try:
    ray.get(maker.make.remote())
except ray.exceptions.RayActorError:
    pass


def dead():
    for _ in range(40):
        ray.get(ref, timeout=120)
        time.sleep(0.25)


show("dead", dead)
