# A running call of a plain actor is not interrupted, but is_canceled() turns true.
import os
import tempfile
import time
import ray
from conform import show

folder = tempfile.mkdtemp()


@ray.remote
class A:
    def m(self):
        open(os.path.join(folder, "started"), "w").close()
        for _ in range(500):
            if ray.get_runtime_context().is_canceled():
                open(os.path.join(folder, "noticed"), "w").close()
                return "noticed"
            time.sleep(0.02)
        return "never"


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
ref = a.m.remote()
while not os.listdir(folder):
    time.sleep(0.01)
show("force", lambda: ray.cancel(ref, force=True))
ray.cancel(ref)
show("get", lambda: ray.get(ref, timeout=120))
print(sorted(os.listdir(folder)))
