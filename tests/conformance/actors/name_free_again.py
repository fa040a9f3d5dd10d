# The name of an actor is free again once its last handle has gone.
import time
import ray
from conform import show


@ray.remote
class A:
    def m(self):
        return 1


def made_and_dropped(pause, **options):
    made = 0
    for _ in range(6):
        try:
            a = A.options(name="x", **options).remote()
            made += ray.get(a.m.remote())
            del a
        except ValueError:
            pass
        time.sleep(pause)
    return made


ray.init(num_cpus=2, include_dashboard=False)
show("with a pause", lambda: made_and_dropped(1.0))
show("get or create", lambda: made_and_dropped(1.0, get_if_exists=True))
