# With num_returns=n, the yields of a generator function fill the refs.
import ray
from conform import show


@ray.remote(num_returns=3)
def f(n):
    for i in range(n):
        yield i * 10


ray.init(num_cpus=1, include_dashboard=False)
show("exact", lambda: ray.get(f.remote(3)))
for n in (2, 4):
    for number, ref in enumerate(f.remote(n)):
        show(f"{n} yields, ref {number}", lambda: ray.get(ref))
