# A restart loses the actor's state; after max_restarts of them the actor is dead.
import os
import ray
from conform import show


@ray.remote(max_restarts=1, max_task_retries=0)
class A:
    def __init__(self):
        self.n = 0

    def up(self):
        self.n += 1
        return self.n, ray.get_runtime_context().was_current_actor_reconstructed

    def die(self):
        os._exit(1)


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
print(ray.get(a.up.remote()), ray.get(a.up.remote()))
show("die", lambda: ray.get(a.die.remote()))


def again():
    while True:
        try:
            return ray.get(a.up.remote())
        except ray.exceptions.ActorUnavailableError:
            pass


show("again", again)
show("die again", lambda: ray.get(a.die.remote()))
show("dead", lambda: ray.get(a.up.remote()))
