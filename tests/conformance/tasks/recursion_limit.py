# RecursionError in a task is an ordinary error.
import ray
from conform import show


@ray.remote
def f():
    return f._function()


ray.init(num_cpus=1, include_dashboard=False)


def forever(n):
    return forever(n + 1)


try:
    ray.get(ray.remote(forever).remote(0))
except RecursionError as error:
    print(type(error).__name__, isinstance(error, ray.exceptions.RayTaskError))
