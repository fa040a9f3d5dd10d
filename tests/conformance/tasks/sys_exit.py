# sys.exit() and SystemExit in a task.
import sys
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)


@ray.remote(max_retries=0)
def leave(code):
    sys.exit(code)


@ray.remote(max_retries=0)
def raise_it():
    raise SystemExit


show("exit(0)", lambda: ray.get(leave.remote(0)))
show("exit(1)", lambda: ray.get(leave.remote(1)))
show("raise", lambda: ray.get(raise_it.remote()))
show("works after", lambda: ray.get(ray.remote(lambda: 1).remote()))
