# ray.kill(no_restart=False) lets max_restarts apply.
import ray
from conform import show


@ray.remote(max_restarts=1, max_task_retries=-1)
class A:
    def __init__(self):
        self.n = 0

    def up(self):
        self.n += 1
        return self.n


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
print(ray.get([a.up.remote(), a.up.remote()]))
ray.kill(a, no_restart=False)


def restarted():
    while True:
        value = ray.get(a.up.remote(), timeout=120)
        if value < 3:
            return "fresh state"


show("after", restarted)
