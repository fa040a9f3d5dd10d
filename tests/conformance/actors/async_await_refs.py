# An async actor can use await, asyncio.gather, asyncio.wait and wait_for with refs.
import asyncio
import time
import ray


@ray.remote
def f(x):
    return x * 2


@ray.remote
def slow():
    time.sleep(30)


@ray.remote(max_retries=0)
def bad():
    raise ValueError("awaited")


@ray.remote
class A:
    async def one(self):
        return await f.remote(1)

    async def gather(self):
        return await asyncio.gather(*[f.remote(i) for i in range(3)])

    async def wait(self):
        done, pending = await asyncio.wait(
            [asyncio.ensure_future(asyncio.wrap_future(f.remote(i).future())) for i in range(3)]
        )
        return sorted(d.result() for d in done), len(pending)

    async def error(self):
        try:
            await bad.remote()
        except ValueError as error:
            return type(error).__name__

    async def timeout(self):
        try:
            await asyncio.wait_for(slow.remote(), 0.2)
        except asyncio.TimeoutError as error:
            return type(error).__name__

    async def passed(self, box):
        return await box[0]


ray.init(num_cpus=2, include_dashboard=False)
a = A.remote()
print(
    ray.get(
        [
            a.one.remote(),
            a.gather.remote(),
            a.wait.remote(),
            a.error.remote(),
            a.passed.remote([ray.put(5)]),
        ]
    )
)
print(ray.get(a.timeout.remote()))
