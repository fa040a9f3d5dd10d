# ray.kill refuses everything but actor handles.
import ray
from conform import show


@ray.remote
class A:
    pass


ray.init(num_cpus=1, include_dashboard=False)
for value in (None, 1, "name", A, ray.put(1)):
    show(type(value).__name__.split("(")[0][:11], lambda: ray.kill(value))
