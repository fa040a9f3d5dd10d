# KeyboardInterrupt and a user's own BaseException in a method.
import ray
from conform import show


class Own(BaseException):
    pass


@ray.remote
class A:
    def interrupt(self):
        raise KeyboardInterrupt

    def own(self):
        raise Own("own")

    def m(self):
        return "alive"


ray.init(num_cpus=1, include_dashboard=False)
for name in ("interrupt", "own"):
    a = A.remote()
    show(name, lambda: ray.get(getattr(a, name).remote(), timeout=120))
    show("after " + name, lambda: ray.get(a.m.remote(), timeout=120))
