# Names of actors are unique, are found by get_actor, and are free after a kill.
import time
import ray
from conform import show


@ray.remote
class A:
    def __init__(self, x=0):
        self.x = x

    def m(self):
        return self.x


ray.init(num_cpus=1, include_dashboard=False)
a = A.options(name="one").remote(1)
show("found", lambda: ray.get(ray.get_actor("one").m.remote()))
show("same", lambda: ray.get_actor("one") == a)
show("taken", lambda: A.options(name="one").remote(), "one")
show("unknown", lambda: ray.get_actor("two"), "two")
show("empty", lambda: ray.get_actor(""))
show("none", lambda: ray.get_actor(None))
ray.kill(a)


def name_free():
    for _ in range(500):
        try:
            return ray.get(A.options(name="one").remote(2).m.remote())
        except ValueError:
            time.sleep(0.02)


show("again", name_free)
