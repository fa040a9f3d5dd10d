# A remote function cannot be called directly; the original is kept.
import ray
from conform import show


@ray.remote
def f(x):
    return x + 1


show("direct", lambda: f(1), "f.remote()")
show("original", lambda: f._function(1))
