# A task that returns another number of values fails every ref with a ValueError.
import ray
from conform import show


@ray.remote(num_returns=2)
def f(n):
    return tuple(range(n))


ray.init(num_cpus=1, include_dashboard=False)
for n in (0, 1, 3):
    a, b = f.remote(n)
    show(f"{n} first", lambda: ray.get(a), "num_returns=2")
    show(f"{n} second", lambda: ray.get(b), "num_returns=2")
