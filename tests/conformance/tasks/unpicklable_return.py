# A return value that cannot be pickled fails the task, but not the worker.
import threading
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
show("lock", lambda: ray.get(ray.remote(max_retries=0)(lambda: threading.Lock()).remote()), "lock")
show(
    "one of two",
    lambda: ray.get(
        ray.remote(num_returns=2, max_retries=0)(lambda: (1, threading.Lock())).remote()[0]
    ),
    "lock",
)
show("after", lambda: ray.get(ray.remote(lambda: 1).remote()))
