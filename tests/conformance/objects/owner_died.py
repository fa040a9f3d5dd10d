# The process that made an object dies: who reads it sees OwnerDiedError.
import ray
from conform import show


@ray.remote
class Maker:
    def make(self):
        return [ray.put("made")]

ray.init(num_cpus=1, include_dashboard=False)
maker = Maker.remote()
ref, = ray.get(maker.make.remote())
show("alive", lambda: ray.get(ref))
ref, = ray.get(maker.make.remote())
ray.kill(maker)
try:
    ray.get(maker.make.remote())
except ray.exceptions.RayActorError:
    pass
show("dead", lambda: ray.get(ref, timeout=20))
