# A value without a length fails a task with num_returns=2.
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
f = ray.remote(num_returns=2)(lambda x: x)
show("int", lambda: ray.get(f.remote(5)))
show("none", lambda: ray.get(f.remote(None)))
show("string", lambda: ray.get(f.remote("ab")))
show("dict", lambda: ray.get(f.remote({"a": 1, "b": 2})))
show("set", lambda: sorted(ray.get(f.remote({1, 2}))))
