# An exception that cannot be pickled reaches its reader as text.
import threading
import ray
from conform import show


class Locked(Exception):
    def __init__(self, text):
        super().__init__(text)
        self.lock = threading.Lock()


@ray.remote(max_retries=0)
def f():
    raise Locked("cannot travel")


ray.init(num_cpus=1, include_dashboard=False)
show("get", lambda: ray.get(f.remote()), "cannot travel", "Locked")
show("caught as", lambda: ray.get(f.remote()), "in f")
