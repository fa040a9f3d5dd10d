# An actor whose runtime_env cannot be made dies in spite of restarts; others are unharmed.
# timeout: 150
import ray
from conform import show


@ray.remote(max_restarts=2)
class A:
    def f(self):
        return 1


ray.init(num_cpus=2, include_dashboard=False)
a = A.options(runtime_env={"conda": "no_such_env_here"}).remote()
show("call", lambda: ray.get(a.f.remote(), timeout=100))
show("again", lambda: ray.get(a.f.remote(), timeout=100))
show("another", lambda: ray.get(A.remote().f.remote(), timeout=60))
