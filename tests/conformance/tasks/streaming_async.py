# A stream works with async for and next_ready().
import asyncio
import ray


@ray.remote
def f(n):
    for i in range(n):
        yield i


async def main():
    values = []
    async for ref in f.remote(3):
        values.append(await ref)
    print(values)
    generator = f.remote(1)
    print(await (await generator.__anext__()))
    try:
        await generator.__anext__()
    except StopAsyncIteration:
        print("StopAsyncIteration")


ray.init(num_cpus=1, include_dashboard=False)
asyncio.run(main())
