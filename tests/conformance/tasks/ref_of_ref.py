# A task that returns a ref gives a ref to a ref: its caller calls ray.get twice.
import ray


@ray.remote
def inner():
    return 7


@ray.remote
def outer():
    return inner.remote()


@ray.remote
def many():
    return [ray.put(i) for i in range(3)]


ray.init(num_cpus=1, include_dashboard=False)
first = ray.get(outer.remote())
print(type(first).__name__, ray.get(first))
print(ray.get(ray.get(many.remote())))
