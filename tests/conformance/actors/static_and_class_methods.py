# Static methods, class methods and properties of an actor class.
import ray
from conform import show


@ray.remote
class A:
    base = 2

    @staticmethod
    def static(x):
        return x + 1

    @classmethod
    def of_class(cls, x):
        return x * cls.base

    @property
    def prop(self):
        return 5

    def __call__(self, x):
        return x

    def __len__(self):
        return 3


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
show("static", lambda: ray.get(a.static.remote(1)))
show("class", lambda: ray.get(a.of_class.remote(2)))
show("prop", lambda: a.prop)
show("call", lambda: ray.get(a.__call__.remote(4)))
show("len", lambda: ray.get(a.__len__.remote()))
