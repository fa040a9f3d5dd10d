# A function that captures an unpicklable object fails when it is first called.
import threading
import ray
from conform import show

lock = threading.Lock()


@ray.remote
def f():
    return lock.locked()


ray.init(num_cpus=1, include_dashboard=False)
show("capture", lambda: f.remote(), "serialize", "lock")
show("argument", lambda: ray.remote(lambda x: 1).remote(lock), "lock")
