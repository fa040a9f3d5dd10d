# A cancelled call of an asyncio actor that catches the cancellation: its caller gets the cancellation all the same.
import asyncio
import time
import ray
from conform import show


@ray.remote
class A:
    async def returns(self):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return 5

    async def raises(self):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ValueError("mine")

    async def fine(self):
        return "fine"


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
ray.get(a.fine.remote())
for method in (a.returns, a.raises):
    ref = method.remote()
    time.sleep(1)
    ray.cancel(ref)
    show("cancelled", lambda: ray.get(ref, timeout=20))
show("others", lambda: ray.get(a.fine.remote()))
