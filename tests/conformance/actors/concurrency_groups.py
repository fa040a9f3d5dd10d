# A blocked concurrency group does not hold up the others; a call may choose its group.
import asyncio
import ray
from conform import show


@ray.remote(concurrency_groups={"io": 1, "compute": 2})
class A:
    def __init__(self):
        self.opened = False

    @ray.method(concurrency_group="io")
    async def block(self):
        while not self.opened:
            await asyncio.sleep(0.01)
        return "unblocked"

    @ray.method(concurrency_group="compute")
    async def compute(self):
        return "computed"

    async def default(self):
        return "default"

    async def open(self):
        self.opened = True


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
blocked = a.block.remote()
print(
    ray.get(
        [
            a.compute.remote(),
            a.default.remote(),
            a.default.options(concurrency_group="compute").remote(),
        ],
        timeout=120,
    )
)
show(
    "same group waits",
    lambda: ray.get(a.default.options(concurrency_group="io").remote(), timeout=0.5),
)
ray.get(a.open.remote())
print(ray.get(blocked))
