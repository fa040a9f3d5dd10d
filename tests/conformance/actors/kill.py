# ray.kill fails pending and later calls; an actor may be killed twice.
import time
import ray
from conform import show


@ray.remote(max_restarts=-1)
class A:
    def m(self):
        return 1

    def slow(self):
        time.sleep(60)


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
print(ray.get(a.m.remote()))
running, queued = a.slow.remote(), a.m.remote()
time.sleep(0.2)
show("kill", lambda: ray.kill(a))
show("running", lambda: ray.get(running, timeout=120), "ray.kill")
show("queued", lambda: ray.get(queued, timeout=120))
show("later", lambda: ray.get(a.m.remote(), timeout=120), "ray.kill")
show("kill again", lambda: ray.kill(a))
