# A cancelled coroutine gets CancelledError, its caller the TaskCancelledError.
import asyncio
import os
import tempfile
import time
import ray
from conform import show

folder = tempfile.mkdtemp()


@ray.remote
class A:
    async def m(self):
        try:
            open(os.path.join(folder, "started"), "w").close()
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            open(os.path.join(folder, "cancelled inside"), "w").close()
            raise

    async def fine(self):
        return 1


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
ref = a.m.remote()
while not os.listdir(folder):
    time.sleep(0.01)
ray.cancel(ref)
show("get", lambda: ray.get(ref, timeout=120))
show("after", lambda: ray.get(a.fine.remote()))
print(sorted(os.listdir(folder)))
