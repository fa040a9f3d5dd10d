# A parent that does not wait for its child: the child runs, its result can be got through a ref in the parent's value.
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
