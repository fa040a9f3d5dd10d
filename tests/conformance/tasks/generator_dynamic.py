# num_returns="dynamic" gives one ref, whose value is an iterable of refs with a length.
import ray
from conform import show


@ray.remote(num_returns="dynamic")
def f(n):
    for i in range(n):
        yield i


ray.init(num_cpus=1, include_dashboard=False)
ref = f.remote(3)
print(type(ref).__name__)
value = ray.get(ref)
show("type", lambda: type(value).__name__)
show("len", lambda: len(value))
show("values", lambda: [ray.get(r) for r in value])
show("again", lambda: [ray.get(r) for r in value])
show("empty", lambda: len(ray.get(f.remote(0))))
