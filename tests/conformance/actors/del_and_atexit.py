# __del__ and atexit functions run when an actor goes out of scope.
import atexit
import os
import tempfile
import time
import ray

folder = tempfile.mkdtemp()


@ray.remote
class A:
    def __init__(self):
        atexit.register(lambda: open(os.path.join(folder, "atexit"), "w").close())

    def m(self):
        return 1

    def __del__(self):
        open(os.path.join(folder, "del"), "w").close()


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
ray.get(a.m.remote())
del a
for _ in range(500):
    if len(os.listdir(folder)) == 2:
        break
    time.sleep(0.02)
print(sorted(os.listdir(folder)))
