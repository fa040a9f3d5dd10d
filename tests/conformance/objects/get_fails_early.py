# get of a list does not wait for the rest once one of it has failed.
import time
import ray
from conform import show

ray.init(num_cpus=2, include_dashboard=False)


@ray.remote(max_retries=0)
def fail():
    raise ValueError("early")


@ray.remote
def slow():
    time.sleep(30)


late = slow.remote()
show("failed last", lambda: ray.get([late, fail.remote()], timeout=120))
show("failed first", lambda: ray.get([fail.remote(), late], timeout=120))
