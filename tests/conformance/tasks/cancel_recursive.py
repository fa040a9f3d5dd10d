# Cancelling a parent cancels its children.
import os
import tempfile
import time
import ray
from conform import show

folder = tempfile.mkdtemp()


@ray.remote
def child():
    try:
        open(os.path.join(folder, "started"), "w").close()
        for _ in range(1500):
            time.sleep(0.02)
    except BaseException:
        open(os.path.join(folder, "child cancelled"), "w").close()
        raise


@ray.remote
def parent():
    return ray.get(child.remote())


ray.init(num_cpus=2, include_dashboard=False)
ref = parent.remote()
while not os.listdir(folder):
    time.sleep(0.01)
ray.cancel(ref)
show("parent", lambda: ray.get(ref, timeout=120))
for _ in range(500):
    if len(os.listdir(folder)) == 2:
        break
    time.sleep(0.02)
print(sorted(os.listdir(folder)))
