# More default actors than CPUs live at once, but not more actors that hold a CPU.
import ray
from conform import show


@ray.remote
class A:
    def m(self):
        return 1


ray.init(num_cpus=1, include_dashboard=False)
many = [A.remote() for _ in range(4)]
print(ray.get([a.m.remote() for a in many]))
first = A.options(num_cpus=1).remote()
print(ray.get(first.m.remote()))
second = A.options(num_cpus=1).remote()
show("second", lambda: ray.get(second.m.remote(), timeout=0.7))
del first
show("after the first has gone", lambda: ray.get(second.m.remote(), timeout=120))
