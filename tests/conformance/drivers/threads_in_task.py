# Threads of a task may use the API.
import concurrent.futures
import ray


@ray.remote
def f(x):
    return x + 1


@ray.remote
def many():
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        return sum(pool.map(lambda x: ray.get(f.remote(x)), range(6)))


ray.init(num_cpus=2, include_dashboard=False)
print(ray.get(many.remote(), timeout=120))
