# An async call that catches its cancellation is cancelled for its caller all the same.
import asyncio
import time
import ray
from conform import show


@ray.remote
class A:
    entered = 0

    async def returns(self):
        self.entered += 1
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return 5

    async def raises(self):
        self.entered += 1
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ValueError("mine")

    async def calls(self):
        return self.entered


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
for call, method in enumerate((a.returns, a.raises), 1):
    ref = method.remote()
    while ray.get(a.calls.remote()) < call:
        time.sleep(0.01)
    ray.cancel(ref)
    show("cancelled", lambda: ray.get(ref, timeout=120))
show("others", lambda: ray.get(a.calls.remote()))
