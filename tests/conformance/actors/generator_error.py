# An error in an actor's stream does not end the actor.
import ray
from conform import show


@ray.remote
class A:
    def gen(self):
        yield 1
        raise ValueError("midway")

    def m(self):
        return "alive"


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
generator = a.gen.remote()
for _ in range(3):
    show("item", lambda: ray.get(next(generator)))
show("after", lambda: ray.get(a.m.remote()))
