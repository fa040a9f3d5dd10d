# exit_actor() works in an async actor.
import ray
from conform import show


@ray.remote
class A:
    async def leave(self):
        ray.actor.exit_actor()

    async def m(self):
        return 1


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
show("before", lambda: ray.get(a.m.remote()))
show("leave", lambda: ray.get(a.leave.remote(), timeout=120))
show("after", lambda: ray.get(a.m.remote(), timeout=120))
