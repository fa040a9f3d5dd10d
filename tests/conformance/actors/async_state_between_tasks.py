# Background tasks of an async actor go on between calls.
import asyncio
import ray


@ray.remote
class A:
    def __init__(self):
        self.ticks = 0

    async def start(self):
        self.task = asyncio.get_running_loop().create_task(self.tick())

    async def tick(self):
        while self.ticks < 3:
            self.ticks += 1
            await asyncio.sleep(0.01)

    async def done(self):
        await self.task
        return self.ticks


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
ray.get(a.start.remote())
print(ray.get(a.done.remote()))
