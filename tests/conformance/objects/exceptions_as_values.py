# Exceptions put as values are values: get returns them.
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
show("put", lambda: repr(ray.get(ray.put(ValueError("value")))))
show("returned", lambda: repr(ray.get(ray.remote(lambda: KeyError("returned")).remote())))
show("class", lambda: ray.get(ray.put(ValueError)))
