# An error in a keyword argument's task reaches the dependent task, which does not run.
import ray
from conform import show


@ray.remote(max_retries=0)
def bad():
    raise KeyError("upstream")


@ray.remote
def f(*, x):
    return "ran"


ray.init(num_cpus=1, include_dashboard=False)
show("keyword", lambda: ray.get(f.remote(x=bad.remote())))
show("nested is not resolved", lambda: ray.get(f.remote(x=[bad.remote()])))
