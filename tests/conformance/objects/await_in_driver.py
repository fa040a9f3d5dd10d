# A driver can await refs and use gather, wait_for and as_completed, errors included.
import asyncio
import time
import ray
from conform import facts


@ray.remote(max_retries=0)
def f(x):
    if x < 0:
        raise ValueError("negative")
    return x


async def main():
    print(await f.remote(1))
    print(await asyncio.gather(f.remote(1), f.remote(2), ray.put(3)))
    results = await asyncio.gather(f.remote(-1), f.remote(2), return_exceptions=True)
    print(facts(results[0]), results[1])
    try:
        await asyncio.wait_for(slow.remote(), 0.2)
    except asyncio.TimeoutError:
        print("TimeoutError")
    print(
        sorted(
            [
                await r
                for r in asyncio.as_completed([f.remote(1).as_future(), f.remote(2).as_future()])
            ]
        )
    )
    print(await asyncio.ensure_future(f.remote(5)))


@ray.remote
def slow():
    time.sleep(20)


ray.init(num_cpus=2, include_dashboard=False)
asyncio.run(main())
