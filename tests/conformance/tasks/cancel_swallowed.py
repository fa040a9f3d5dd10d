# A cancelled task may catch the interrupt and return a value.
import os
import tempfile
import time
import ray
from conform import show

path = os.path.join(tempfile.mkdtemp(), "started")


@ray.remote
def f():
    try:
        open(path, "w").close()
        for _ in range(1000):
            time.sleep(0.02)
    except KeyboardInterrupt:
        return "survived"


ray.init(num_cpus=1, include_dashboard=False)
ref = f.remote()
while not os.path.exists(path):
    time.sleep(0.01)
ray.cancel(ref)
show("get", lambda: ray.get(ref, timeout=120))
show("worker works after", lambda: ray.get(ray.remote(lambda: 1).remote()))
