# Each put makes a new object from a copy; a ref cannot be put.
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
value = [1]
a, b = ray.put(value), ray.put(value)
value.append(2)
print(a == b, ray.get(a), ray.get(b), ray.get(a) is ray.get(a))
show("ref", lambda: ray.put(a))
show("ref in list", lambda: ray.get(ray.get(ray.put([a]))[0]))
show("owner", lambda: ray.put(1, _owner=5))
show("keyword", lambda: ray.get(ray.put(value=3)))
show("nothing", lambda: ray.put())
