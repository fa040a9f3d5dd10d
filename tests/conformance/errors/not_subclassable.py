# Some causes cannot be a base class of the dual error.
import ray
from conform import show


class Final(Exception):
    def __init_subclass__(cls, **kwargs):
        raise TypeError("final")


class Blocked(Exception):
    def __init__(self, text):
        self.text = text

    @property
    def args(self):
        return (self.text,)


@ray.remote(max_retries=0)
def f(kind):
    raise kind("x")


ray.init(num_cpus=1, include_dashboard=False)
show("final", lambda: ray.get(f.remote(Final)))
show("blocked", lambda: ray.get(f.remote(Blocked)))
