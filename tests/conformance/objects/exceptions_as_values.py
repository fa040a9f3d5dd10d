# An exception that was put is a value: get returns it.
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
show("put", lambda: repr(ray.get(ray.put(ValueError("value")))))
show("returned", lambda: repr(ray.get(ray.remote(lambda: KeyError("returned")).remote())))
show("class", lambda: ray.get(ray.put(ValueError)))
