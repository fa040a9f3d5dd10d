# The items that a cancelled stream produced stay readable; the error follows them.
import os
import tempfile
import time
import ray
from conform import show

path = os.path.join(tempfile.mkdtemp(), "two")


@ray.remote
def f():
    yield 1
    yield 2
    open(path, "w").close()
    for _ in range(1500):
        time.sleep(0.02)
    yield 3


ray.init(num_cpus=1, include_dashboard=False)
generator = f.remote()
while not os.path.exists(path):
    time.sleep(0.01)
ray.cancel(generator)
for _ in range(4):
    show("item", lambda: ray.get(next(generator)))
