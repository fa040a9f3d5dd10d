# A static generator that raises midway: which refs have values and which raise.
import ray
from conform import show


@ray.remote(num_returns=3, max_retries=0)
def f():
    yield 1
    raise KeyError("stop")


ray.init(num_cpus=1, include_dashboard=False)
for number, ref in enumerate(f.remote()):
    show(str(number), lambda: ray.get(ref))
