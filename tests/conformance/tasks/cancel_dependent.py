# A task whose argument's task was cancelled fails with that error.
import time
import ray
from conform import show


@ray.remote
def slow():
    time.sleep(2)


@ray.remote
def after(x):
    return x


ray.init(num_cpus=1, include_dashboard=False)
blocker = slow.remote()
first = slow.remote()
second = after.remote(first)
ray.cancel(first)
show("second", lambda: ray.get(second, timeout=120))
