# Sync methods of an async actor run on its event loop.
import asyncio
import threading
import ray


@ray.remote
class A:
    def __init__(self):
        self.thread = None

    async def go(self):
        self.thread = threading.get_ident()
        return asyncio.get_running_loop() is not None

    def sync(self):
        return threading.get_ident() == self.thread


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
print(ray.get(a.go.remote()), ray.get(a.sync.remote()))
