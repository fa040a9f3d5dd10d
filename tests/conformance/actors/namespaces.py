# Names live in namespaces, and a lookup may give one.
import ray
from conform import show


@ray.remote
class A:
    def m(self):
        return ray.get_runtime_context().namespace


ray.init(num_cpus=1, namespace="home", include_dashboard=False)
here = A.options(name="x").remote()
away = A.options(name="x", namespace="away").remote()
print(ray.get_runtime_context().namespace)
show("here", lambda: ray.get_actor("x") == here)
show("named here", lambda: ray.get_actor("x", namespace="home") == here)
show("away", lambda: ray.get_actor("x", namespace="away") == away)
show("nowhere", lambda: ray.get_actor("x", namespace="nowhere"))
show("empty", lambda: ray.get_actor("x", namespace=""))
show("wrong type", lambda: ray.get_actor("x", namespace=3))
show("inside", lambda: ray.get([here.m.remote(), away.m.remote()]))
