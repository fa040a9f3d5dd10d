# A call that kills its actor each time fails after max_task_retries.
import os
import tempfile
import ray
from conform import show

path = os.path.join(tempfile.mkdtemp(), "count")


@ray.remote(max_restarts=-1, max_task_retries=1)
class A:
    def die(self):
        with open(path, "a") as file:
            file.write("x")
        os._exit(1)

    def m(self):
        return "alive"


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
show("die", lambda: ray.get(a.die.remote(), timeout=120))
print(os.path.getsize(path))
show("after", lambda: ray.get(a.m.remote(), timeout=120))
