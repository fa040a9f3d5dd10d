# A task whose ref is dropped before its end runs all the same.
import os
import tempfile
import time
import ray

path = os.path.join(tempfile.mkdtemp(), "ran")


@ray.remote
def f():
    time.sleep(0.2)
    open(path, "w").close()


ray.init(num_cpus=1, include_dashboard=False)
f.remote()
for _ in range(500):
    if os.path.exists(path):
        break
    time.sleep(0.02)
print(os.path.exists(path))
