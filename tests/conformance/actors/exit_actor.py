# exit_actor() fails its own and later calls without a restart; elsewhere it is a TypeError.
import ray
from conform import show


@ray.remote(max_restarts=5)
class A:
    def leave(self):
        ray.actor.exit_actor()

    def m(self):
        return 1


@ray.remote(max_retries=0)
def task():
    ray.actor.exit_actor()


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
show("before", lambda: ray.get(a.m.remote()))
show("leave", lambda: ray.get(a.leave.remote(), timeout=120), "exit_actor")
show("after", lambda: ray.get(a.m.remote(), timeout=120))
show("driver", ray.actor.exit_actor)
try:
    ray.get(task.remote(), timeout=120)
except TypeError as error:
    print("task:", type(error).__name__)
