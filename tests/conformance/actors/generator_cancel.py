# A cancelled actor stream ends between items, or at an await; the actor goes on.
import asyncio
import time
import ray
from conform import show


class A:
    def items(self):
        for i in range(100):
            yield i
            time.sleep(0.2)

    def m(self):
        return "alive"


class B:
    async def items(self):
        yield 0
        await asyncio.sleep(300)

    async def m(self):
        return "alive"


def check(name, actor):
    generator = actor.items.remote()
    show(name, lambda: ray.get(next(generator)))
    ray.cancel(generator)
    for _ in range(3):
        show(name, lambda: ray.get(next(generator)))
    show(name + " completed", lambda: ray.get(generator.completed()))
    show(name + " after", lambda: ray.get(actor.m.remote()))


ray.init(num_cpus=2, include_dashboard=False)
check("plain", ray.remote(A).remote())
check("threaded", ray.remote(A).options(max_concurrency=2).remote())
check("async", ray.remote(B).remote())
