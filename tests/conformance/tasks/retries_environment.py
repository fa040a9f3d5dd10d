# RAY_TASK_MAX_RETRIES changes the default of max_retries.
# env: RAY_TASK_MAX_RETRIES=0
import os
import tempfile
import ray
from conform import show

path = os.path.join(tempfile.mkdtemp(), "count")


@ray.remote
def f():
    with open(path, "a") as file:
        file.write("x")
    os._exit(1)


ray.init(num_cpus=1, include_dashboard=False)
show("crash", lambda: ray.get(f.remote()))
print(os.path.getsize(path))
