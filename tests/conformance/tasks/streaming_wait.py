# ray.wait takes generators, alone and with refs.
import ray
from conform import show


@ray.remote
def f():
    yield 1
    yield 2


ray.init(num_cpus=1, include_dashboard=False)
generator = f.remote()
ready, rest = ray.wait([generator], timeout=120)
print(len(ready), len(rest), ready[0] is generator)
show("item", lambda: ray.get(next(ready[0])))
ref = ray.put(1)
ready, rest = ray.wait([generator, ref], num_returns=2, timeout=120)
print(len(ready), [type(r).__name__ for r in ready])
show("drained", lambda: [ray.get(r) for r in generator])
ready, rest = ray.wait([generator], timeout=120)
print(len(ready), len(rest))
