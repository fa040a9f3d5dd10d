# With num_returns=0 .remote() returns None, and a returned value is dropped.
import ray
from conform import show


@ray.remote(num_returns=0)
def f():
    return 1


ray.init(num_cpus=1, include_dashboard=False)
show("zero", lambda: f.remote())
show("option", lambda: f.options(num_returns=1).remote() and "ref")
show("value", lambda: ray.get(f.options(num_returns=1).remote()))
