# max_concurrency of an async actor limits the coroutines that run at once.
import asyncio
import ray


@ray.remote(max_concurrency=3)
class A:
    def __init__(self):
        self.now = self.most = 0

    async def m(self):
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.05)
        self.now -= 1

    async def read(self):
        return self.most


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
ray.get([a.m.remote() for _ in range(12)])
print(ray.get(a.read.remote()))
