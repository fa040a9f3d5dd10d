# With max_task_retries, a call in flight at a death runs again in the restarted actor.
import os
import tempfile
import ray
from conform import show

path = os.path.join(tempfile.mkdtemp(), "died")


@ray.remote(max_restarts=2, max_task_retries=2)
class A:
    def die_once(self):
        if not os.path.exists(path):
            open(path, "w").close()
            os._exit(1)
        return "second life"

    def m(self):
        return 1


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
refs = [a.die_once.remote(), a.m.remote()]
show("values", lambda: ray.get(refs, timeout=120))
