# A handle of an earlier session is refused.
import ray
from conform import show


@ray.remote
class A:
    def m(self):
        return 1


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
print(ray.get(a.m.remote()))
ray.shutdown()
ray.init(num_cpus=1, include_dashboard=False)
show("call", lambda: ray.get(a.m.remote()))
show("class again", lambda: ray.get(A.remote().m.remote()))
