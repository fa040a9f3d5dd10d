# cancel(recursive=False) leaves the children alone.
import os
import tempfile
import time
import ray
from conform import show

folder = tempfile.mkdtemp()


@ray.remote
def child():
    open(os.path.join(folder, "started"), "w").close()
    time.sleep(1)
    open(os.path.join(folder, "finished"), "w").close()


@ray.remote
def parent():
    return ray.get(child.remote())


ray.init(num_cpus=2, include_dashboard=False)
ref = parent.remote()
while not os.listdir(folder):
    time.sleep(0.01)
ray.cancel(ref, recursive=False)
show("parent", lambda: ray.get(ref, timeout=120))
for _ in range(200):
    if len(os.listdir(folder)) == 2:
        break
    time.sleep(0.02)
print(sorted(os.listdir(folder)))
