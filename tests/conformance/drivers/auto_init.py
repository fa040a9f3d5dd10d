# The first .remote() initialises the program.
import ray


@ray.remote
def f():
    return 1


print(ray.is_initialized(), ray.get(f.remote()), ray.is_initialized())
