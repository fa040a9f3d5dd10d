# A child outlives a parent that does not wait for it and returns its ref.
import time
import ray


@ray.remote
def child():
    time.sleep(0.3)
    return "child"


@ray.remote
def parent():
    return [child.remote()]


ray.init(num_cpus=2, include_dashboard=False)
(inner,) = ray.get(parent.remote())
print(ray.get(inner))
