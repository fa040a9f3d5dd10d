# A GetTimeoutError inside a task fails the task.
import time
import ray
from conform import show


@ray.remote
def slow():
    time.sleep(5)


@ray.remote(max_retries=0)
def f():
    ray.get(slow.remote(), timeout=0.1)


ray.init(num_cpus=2, include_dashboard=False)
show("get", lambda: ray.get(f.remote(), timeout=120))
