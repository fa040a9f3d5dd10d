# Classes, handles and methods cannot be called directly; unknown attributes raise.
import ray
from conform import show


@ray.remote
class A:
    value = 5

    def __init__(self):
        self.n = 1

    def m(self):
        return self.n


ray.init(num_cpus=1, include_dashboard=False)
show("class", lambda: A(), "A.remote()")
a = A.remote()
show("method", lambda: a.m(), ".remote")
show("handle", lambda: a())
show("unknown method", lambda: a.none, "none")
show("instance attribute", lambda: a.n)
show("class attribute", lambda: a.value)
show("method of class", lambda: A.m.remote())
show("set attribute", lambda: setattr(a, "x", 1) or a.x)
show("inside", lambda: ray.get(a.m.remote()))
