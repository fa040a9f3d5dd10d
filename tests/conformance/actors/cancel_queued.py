# A queued call of an actor can be cancelled.
import time
import ray
from conform import show


@ray.remote
class A:
    def __init__(self):
        self.n = 0

    def slow(self):
        time.sleep(0.7)

    def up(self):
        self.n += 1
        return self.n


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
ray.get(a.up.remote())
a.slow.remote()
queued = a.up.remote()
ray.cancel(queued)
show("queued", lambda: ray.get(queued))
show("next", lambda: ray.get(a.up.remote()))
