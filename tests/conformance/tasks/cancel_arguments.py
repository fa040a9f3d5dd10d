# ray.cancel refuses everything but one ref.
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
for value in (None, 3, "ref", [ray.put(1)]):
    show(type(value).__name__, lambda: ray.cancel(value))
