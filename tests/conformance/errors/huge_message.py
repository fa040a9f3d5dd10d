# A message of a megabyte arrives whole.
import ray


@ray.remote(max_retries=0)
def f():
    raise ValueError("x" * 1_000_000)


ray.init(num_cpus=1, include_dashboard=False)
try:
    ray.get(f.remote())
except ValueError as error:
    print(len(str(error.cause)), str(error).count("x") >= 1_000_000)
