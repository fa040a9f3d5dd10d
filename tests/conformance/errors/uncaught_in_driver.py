# A driver that does not catch an error ends with exit code 1.
import ray


@ray.remote(max_retries=0)
def f():
    raise ValueError("nobody catches")


ray.init(num_cpus=1, include_dashboard=False)
print("before", flush=True)
ray.get(f.remote())
