# A task that waits for its argument is cancelled; the argument's task is not.
import time
import ray
from conform import show


@ray.remote
def slow():
    time.sleep(1)
    return "slow"


@ray.remote
def after(x):
    return x


ray.init(num_cpus=2, include_dashboard=False)
first = slow.remote()
second = after.remote(first)
ray.cancel(second)
show("second", lambda: ray.get(second))
show("first", lambda: ray.get(first))
