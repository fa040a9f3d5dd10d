# Constructor and method calls that do not fit the signature are refused.
import ray
from conform import show


@ray.remote
class A:
    def __init__(self, x, *, y=1):
        self.x = x

    def m(self, a, b=2):
        return a, b


ray.init(num_cpus=1, include_dashboard=False)
show("constructor none", lambda: A.remote(), "missing a required argument", "'x'")
show("constructor many", lambda: A.remote(1, 2), "too many positional arguments")
show("constructor unknown", lambda: A.remote(1, z=2), "unexpected keyword argument", "'z'")
a = A.remote(1, y=2)
show("method none", lambda: a.m.remote(), "missing a required argument", "'a'")
show("method many", lambda: a.m.remote(1, 2, 3), "too many positional arguments")
show("method unknown", lambda: a.m.remote(1, c=2), "unexpected keyword argument")
show("method right", lambda: ray.get(a.m.remote(1, b=5)))
