# A task in ray.wait lends its CPU, as one in ray.get does.
import ray


@ray.remote
def inner():
    return 1


@ray.remote
def outer():
    ready, rest = ray.wait([inner.remote() for _ in range(3)], num_returns=3, timeout=120)
    return len(ready), len(rest)


ray.init(num_cpus=1, include_dashboard=False)
print(ray.get(outer.remote()))
