# __ray_terminate__ ends an actor after its queued calls; __ray_ready__, __ray_call__.
import ray
from conform import show


@ray.remote
class A:
    def __init__(self):
        self.n = 4

    def m(self):
        return 1


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
show("ready", lambda: ray.get(a.__ray_ready__.remote()))
show("call", lambda: ray.get(a.__ray_call__.remote(lambda self, x, y=0: self.n + x + y, 5, y=1)))
show("call sets", lambda: ray.get(a.__ray_call__.remote(lambda self: setattr(self, "n", 7))))
show("kept", lambda: ray.get(a.__ray_call__.remote(lambda self: self.n)))
ref = a.m.remote()
end = a.__ray_terminate__.remote()
show("queued", lambda: ray.get(ref))
ray.wait([end], timeout=120)
show("after", lambda: ray.get(a.m.remote(), timeout=120))
