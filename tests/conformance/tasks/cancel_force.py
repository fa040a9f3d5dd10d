# cancel(force=True) kills the worker of a running task.
import os
import tempfile
import time
import ray
from conform import show

path = os.path.join(tempfile.mkdtemp(), "started")


@ray.remote
def f():
    open(path, "w").close()
    while True:
        try:
            time.sleep(100)
        except BaseException:
            pass


ray.init(num_cpus=1, include_dashboard=False)
ref = f.remote()
while not os.path.exists(path):
    time.sleep(0.01)
ray.cancel(ref, force=True)
show("get", lambda: ray.get(ref, timeout=120))
show("after", lambda: ray.get(ray.remote(lambda: 1).remote()))
