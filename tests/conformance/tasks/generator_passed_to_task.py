# The refs of a dynamic generator can be passed on; its own ref becomes the generator.
import ray
from conform import show


@ray.remote(num_returns="dynamic")
def f():
    yield from (1, 2, 3)


@ray.remote
def total(generator):
    return sum(ray.get(list(generator)))


ray.init(num_cpus=2, include_dashboard=False)
show("sum", lambda: ray.get(total.remote(f.remote())))
