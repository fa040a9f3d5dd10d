# __name__ and sys.argv in a task.
import sys
import ray


@ray.remote
def f():
    return __name__, f.__module__


ray.init(num_cpus=1, include_dashboard=False)
print(ray.get(f.remote()))
