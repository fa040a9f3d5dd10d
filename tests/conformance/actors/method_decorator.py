# ray.method takes num_returns, refuses bad keys, and works on a base class.
import ray
from conform import show


class Base:
    @ray.method(num_returns=2)
    def two(self):
        return 1, 2


@ray.remote
class A(Base):
    @ray.method(num_returns=0)
    def none(self):
        return 5

    @ray.method(num_returns=3)
    def three(self):
        return 1, 2

    @ray.method
    def bare(self):
        return "bare"


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
show("two", lambda: ray.get(a.two.remote()))
show("none", lambda: a.none.remote())
show("three", lambda: ray.get(a.three.remote()), "num_returns=3")
show("bare", lambda: ray.get(a.bare.remote()))
show("options", lambda: ray.get(a.two.options(num_returns=1).remote()))
show("bad key", lambda: ray.method(colour=1)(lambda self: 1))
show("no arguments", lambda: ray.method())
