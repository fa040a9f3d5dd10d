# A value that cannot be loaded makes get raise, and fails a task that gets it.
import ray
from conform import show


def explode():
    raise ValueError("cannot load")


class Bomb:
    def __reduce__(self):
        return explode, ()


ray.init(num_cpus=1, include_dashboard=False)
show("put", lambda: ray.get(ray.put(Bomb())), "cannot load")
show("return", lambda: ray.get(ray.remote(lambda: Bomb()).remote()), "cannot load")
show(
    "argument",
    lambda: ray.get(ray.remote(max_retries=0)(lambda x: 1).remote(Bomb()), timeout=120),
    "cannot load",
)
show("after", lambda: ray.get(ray.remote(lambda: 1).remote()))
