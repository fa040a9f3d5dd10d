"""An actor at which calls wait until a test lets them go."""

import asyncio

import ray


@ray.remote(num_cpus=0)
class Gate:
    """Calls of wait() end when open() is called."""

    def __init__(self):
        self._event = asyncio.Event()

    async def wait(self):
        await self._event.wait()

    async def open(self):
        self._event.set()
