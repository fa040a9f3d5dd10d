# A remote function, with its options, travels as an argument and as a result.
import ray


@ray.remote
def f(x):
    return x + 1


@ray.remote
def call(function, x):
    return ray.get(function.remote(x))


@ray.remote
def make():
    return f


ray.init(num_cpus=1, include_dashboard=False)
print(ray.get(call.remote(f, 1)))
print(ray.get(ray.get(make.remote()).remote(2)))
