# A call of a generator function returns an iterator of refs.
import ray
from conform import show


@ray.remote
def f(n):
    for i in range(n):
        yield i


ray.init(num_cpus=1, include_dashboard=False)
generator = f.remote(3)
print(type(generator).__name__, isinstance(generator, ray.ObjectRefGenerator))
show("values", lambda: [ray.get(ref) for ref in generator])
show("after the end", lambda: next(generator))
show("empty", lambda: list(f.remote(0)))
show("explicit", lambda: [ray.get(ref) for ref in f.options(num_returns="streaming").remote(2)])
