# get_actor does not find an actor that has died.
import ray
from conform import show


@ray.remote
class A:
    def m(self):
        return 1


ray.init(num_cpus=1, include_dashboard=False)
a = A.options(name="a").remote()
ray.get(a.m.remote())
ray.kill(a)
try:
    ray.get(a.m.remote())
except ray.exceptions.ActorDiedError:
    pass
show("get_actor", lambda: ray.get_actor("a"), "a")
