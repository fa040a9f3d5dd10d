# shutdown may be repeated; refs and functions after it.
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
f = ray.remote(lambda: 1)
print(ray.get(f.remote()))
show("one", ray.shutdown)
show("two", ray.shutdown)
print(ray.is_initialized())
ray.init(num_cpus=1, include_dashboard=False)
print(ray.get(f.remote()))
show("positional", lambda: ray.shutdown(True))
