# Generator methods stream, with num_returns and as async generators too.
import asyncio
import ray
from conform import show


@ray.remote
class A:
    def gen(self, n):
        for i in range(n):
            yield i

    @ray.method(num_returns=2)
    def static(self):
        yield 1
        yield 2


@ray.remote
class Async:
    async def gen(self, n):
        for i in range(n):
            await asyncio.sleep(0)
            yield i


ray.init(num_cpus=1, include_dashboard=False)
a, b = A.remote(), Async.remote()
show("type", lambda: type(a.gen.remote(1)).__name__)
show("stream", lambda: [ray.get(r) for r in a.gen.remote(3)])
show("static", lambda: ray.get(a.static.remote()))
show(
    "dynamic", lambda: [ray.get(r) for r in ray.get(a.gen.options(num_returns="dynamic").remote(2))]
)
show("async", lambda: [ray.get(r) for r in b.gen.remote(3)])
