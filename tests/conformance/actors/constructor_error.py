# If a constructor raises, every call fails with an error that contains its error.
import ray
from conform import show


@ray.remote(max_restarts=3)
class A:
    def __init__(self):
        raise ValueError("cannot be built")

    def m(self):
        return 1


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
for _ in range(2):
    show("call", lambda: ray.get(a.m.remote()), "cannot be built", "ValueError", "__init__")
try:
    ray.get(a.m.remote())
except ray.exceptions.ActorDiedError as error:
    print(error.actor_init_failed, error.actor_id == a._actor_id.hex(), error.preempted)
