# Actor deaths are caught as RayActorError, not as RayTaskError.
import os
import ray
from conform import show


@ray.remote
class A:
    def __init__(self, how):
        if how == "exit":
            os._exit(3)

    def m(self):
        return 1


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote("exit")
show("constructor exit", lambda: ray.get(a.m.remote(), timeout=120))
try:
    ray.get(a.m.remote())
except ray.exceptions.RayActorError as error:
    print(isinstance(error, ray.exceptions.RayTaskError), error.actor_init_failed)
