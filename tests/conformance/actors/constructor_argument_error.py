# A failed task as a constructor's argument fails the actor.
import ray
from conform import show


@ray.remote(max_retries=0)
def bad():
    raise KeyError("argument")


@ray.remote
class A:
    def __init__(self, x):
        self.x = x

    def m(self):
        return self.x


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote(bad.remote())
show("call", lambda: ray.get(a.m.remote(), timeout=120), "argument", "KeyError")
