# An actor that still waits for resources can be killed.
import ray
from conform import show


@ray.remote(resources={"none": 1})
class A:
    def m(self):
        return 1


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
ref = a.m.remote()
ray.kill(a)
show("call", lambda: ray.get(ref, timeout=120))
