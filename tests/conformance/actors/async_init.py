# __init__ may be a coroutine function.
import asyncio
import ray
from conform import show


@ray.remote
class Both:
    async def __init__(self, x):
        await asyncio.sleep(0.01)
        self.x = x

    async def get(self):
        return self.x


@ray.remote
class SyncMethods:
    async def __init__(self, x, y=2):
        await asyncio.sleep(0.01)
        self.x = x + y

    def get(self):
        return self.x


@ray.remote
class Fails:
    async def __init__(self):
        await asyncio.sleep(0.01)
        raise ValueError("not today")

    async def get(self):
        return 1


ray.init(num_cpus=2, include_dashboard=False)
show("async methods", lambda: ray.get(Both.remote(4).get.remote()))
show("sync methods", lambda: ray.get(SyncMethods.remote(4, y=3).get.remote()))
show("fails", lambda: ray.get(Fails.remote().get.remote()), "ValueError: not today")
