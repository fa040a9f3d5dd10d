# Methods made by functools.partialmethod and functools.wraps work.
import functools
import ray
from conform import show


def doubled(method):
    @functools.wraps(method)
    def call(self, *args):
        return 2 * method(self, *args)

    return call


@ray.remote
class A:
    def add(self, a, b=10, *, c=0):
        return a + b + c

    add_five = functools.partialmethod(add, 5)
    add_named = functools.partialmethod(add, b=7)

    @doubled
    def twice(self, x):
        return x

    def items(self, n):
        yield from range(n)

    three = functools.partialmethod(items, 3)


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
show("partial", lambda: ray.get(a.add_five.remote(1)))
show("partial with its default", lambda: ray.get(a.add_five.remote()))
show("partial with a keyword", lambda: ray.get(a.add_five.remote(1, c=100)))
show("partial by keyword", lambda: ray.get(a.add_named.remote(1)))
show("wrapped", lambda: ray.get(a.twice.remote(4)))
