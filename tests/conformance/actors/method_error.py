# An error in a method has its class, and the actor lives on with its state.
import ray
from conform import show


class Mine(Exception):
    pass


@ray.remote
class A:
    n = 0

    def up(self, fail):
        self.n += 1
        if fail:
            raise Mine("failed", self.n)
        return self.n


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
show("one", lambda: ray.get(a.up.remote(False)))
show("two", lambda: ray.get(a.up.remote(True)), "A.up()")
show("three", lambda: ray.get(a.up.remote(False)))
try:
    ray.get(a.up.remote(True))
except Mine as error:
    print(error.cause.args, isinstance(error, ray.exceptions.RayTaskError))
