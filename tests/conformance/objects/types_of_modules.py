# Modules, functions, classes made at run time, partials, closures and lambdas as values.
import functools
import json
import ray
from conform import show


def outer(k):
    return lambda x: x + k


ray.init(num_cpus=1, include_dashboard=False)
Made = type("Made", (), {"value": 5, "read": lambda self: self.value})
show("module", lambda: ray.get(ray.put(json)) is json)
show("closure", lambda: ray.get(ray.put(outer(2)))(3))
show("partial", lambda: ray.get(ray.put(functools.partial(int, base=2)))("101"))
show("made class", lambda: ray.get(ray.put(Made())).read())
show("in task", lambda: ray.get(ray.remote(lambda kind: kind().read()).remote(Made)))
show("property", lambda: ray.get(ray.remote(lambda m: m.dumps([1])).remote(json)))
