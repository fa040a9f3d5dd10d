# A queued task that is cancelled never starts.
import os
import tempfile
import time
import ray
from conform import show

path = os.path.join(tempfile.mkdtemp(), "ran")


@ray.remote
def block():
    time.sleep(1.5)
    return "blocked"


@ray.remote
def mark():
    open(path, "w").close()


ray.init(num_cpus=1, include_dashboard=False)
first = block.remote()
second = mark.remote()
show("cancel", lambda: ray.cancel(second))
show("queued", lambda: ray.get(second))
show("first", lambda: ray.get(first))
print(os.path.exists(path))
