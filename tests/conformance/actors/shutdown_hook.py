# __ray_shutdown__ is called when an actor ends gracefully.
import os
import tempfile
import time
import ray

folder = tempfile.mkdtemp()


@ray.remote
class A:
    def m(self):
        return 1

    def __ray_shutdown__(self):
        open(os.path.join(folder, "hook"), "w").close()


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
ray.get(a.m.remote())
ray.get(a.m.remote())
del a
for _ in range(250):
    if os.listdir(folder):
        break
    time.sleep(0.02)
print(os.listdir(folder))
