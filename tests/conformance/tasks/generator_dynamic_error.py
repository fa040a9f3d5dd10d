# A dynamic generator that fails midway keeps its items; one more ref raises.
import ray
from conform import show


@ray.remote(num_returns="dynamic", max_retries=0)
def f():
    yield 1
    yield 2
    raise ValueError("midway")


ray.init(num_cpus=1, include_dashboard=False)
refs = None


def fetch():
    global refs
    refs = list(ray.get(f.remote()))
    return len(refs)


show("count", fetch)
for ref in refs or ():
    show("item", lambda: ray.get(ref))
