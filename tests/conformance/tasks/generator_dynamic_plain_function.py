# num_returns="dynamic" or "streaming" is refused for functions that are no generators.
import ray
from conform import show


@ray.remote
def f():
    return [1, 2]


ray.init(num_cpus=1, include_dashboard=False)
for kind in ("dynamic", "streaming"):
    show(kind + " options", lambda: f.options(num_returns=kind).remote() and "accepted")
    show(kind + " decorator", lambda: ray.remote(num_returns=kind)(lambda: [1]) and "accepted")
