# Calls of an async actor interleave: one call can wait for another.
import asyncio
import ray


@ray.remote
class Gate:
    def __init__(self):
        self.event = asyncio.Event()

    async def wait(self):
        await self.event.wait()
        return "opened"

    async def open(self):
        self.event.set()


ray.init(num_cpus=1, include_dashboard=False)
gate = Gate.remote()
waiting = [gate.wait.remote() for _ in range(50)]
ray.get(gate.open.remote())
print(set(ray.get(waiting)), len(waiting))
