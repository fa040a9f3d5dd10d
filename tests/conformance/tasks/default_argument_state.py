# A mutable default lives in the worker process, as in a local function.
import ray


@ray.remote
def f(x, seen=[]):
    seen.append(x)
    return list(seen)


ray.init(num_cpus=1, include_dashboard=False)
print(ray.get(f.remote(1)))
print(ray.get(f.remote(2)))
