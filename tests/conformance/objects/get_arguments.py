# ray.get takes refs and lists of refs and refuses everything else.
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
a, b = ray.put(1), ray.put(2)
show("ref", lambda: ray.get(a))
show("list", lambda: ray.get([a, b]))
show("same twice", lambda: ray.get([a, a]))
show("empty", lambda: ray.get([]))
show("tuple", lambda: ray.get((a, b)))
show("set", lambda: ray.get({a}))
show("dict", lambda: ray.get({"a": a}))
show("generator", lambda: ray.get(r for r in [a]))
show("int", lambda: ray.get(3))
show("none", lambda: ray.get(None))
show("list with int", lambda: ray.get([a, 3]))
show("nested list", lambda: ray.get([[a]]))
show("positional timeout", lambda: ray.get(a, 1))
show("function", lambda: ray.get(len))
