# sys.exit() in an actor method ends the actor.
import sys
import ray
from conform import show


@ray.remote
class A:
    def leave(self):
        sys.exit(0)

    def m(self):
        return 1


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
show("leave", lambda: ray.get(a.leave.remote(), timeout=120))
show("after", lambda: ray.get(a.m.remote(), timeout=120))
