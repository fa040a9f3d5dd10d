# ray.remote accepts functions and classes and refuses everything else.
import functools
import ray
from conform import show


class Callable:
    def __call__(self):
        return 1


async def coroutine():
    return 1


show("no arguments", lambda: ray.remote())
show("int", lambda: ray.remote(3))
show("string", lambda: ray.remote("f"))
show("two functions", lambda: ray.remote(len, len))
show("option and positional", lambda: ray.remote(len, num_cpus=1))
show("option applied to int", lambda: ray.remote(num_cpus=1)(3))
show("coroutine function", lambda: ray.remote(coroutine))
show("partial", lambda: type(ray.remote(functools.partial(int, "3"))).__name__)
show("callable object", lambda: type(ray.remote(Callable())).__name__)
show("builtin", lambda: type(ray.remote(len)).__name__)
show("class", lambda: type(ray.remote(Callable)).__name__[:10])
show("twice", lambda: ray.remote(ray.remote(lambda: 1)))
