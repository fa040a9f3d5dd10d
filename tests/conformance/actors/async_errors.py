# Errors of async methods, StopIteration among them, reach the caller.
import asyncio
import ray
from conform import show


@ray.remote
class A:
    async def bad(self, error):
        await asyncio.sleep(0)
        raise error

    async def fine(self):
        return 1


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
show("value", lambda: ray.get(a.bad.remote(ValueError("v"))))
show("own cancel", lambda: ray.get(a.bad.remote(asyncio.CancelledError())))
show("timeout", lambda: ray.get(a.bad.remote(asyncio.TimeoutError("t"))))
show("fine", lambda: ray.get(a.fine.remote()))
