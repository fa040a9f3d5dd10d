# A generator tells its state, and waiting for an item with a time limit gives the nil ref.
import asyncio
import os
import tempfile
import time
import ray
from conform import show

gate = os.path.join(tempfile.mkdtemp(), "gate")


@ray.remote
def f(n):
    for i in range(n):
        yield i


@ray.remote
def held():
    while not os.path.exists(gate):
        time.sleep(0.01)
    yield 1


ray.init(num_cpus=2, include_dashboard=False)
generator = f.remote(2)
show("result", lambda: ray.get(generator._generator_ref))
print("completed() is the result:", generator.completed() == generator._generator_ref)
show("at the start", lambda: (generator.next_ready(), generator.is_finished()))
print(
    "indexes:",
    [ref.hex()[48:] for ref in [next(generator), next(generator)]],
    generator._generator_ref.hex()[48:],
)
show("at the end", lambda: (generator.next_ready(), generator.is_finished()))
show("after it", lambda: generator._next_sync(1))
generator = held.remote()
show(
    "nothing yet",
    lambda: (
        generator.next_ready(),
        generator.is_finished(),
        generator._next_sync(0.01).is_nil(),
        generator._next_sync(timeout_s=0).is_nil(),
    ),
)
show("wait", lambda: [len(part) for part in ray.wait([generator], timeout=0)])
show("twice", lambda: ray.wait([generator, generator], timeout=0))
show("get with a limit", lambda: ray.get(generator, timeout=1) is generator)


async def main():
    print((await generator._next_async(timeout_s=0.01)).is_nil())
    open(gate, "w").close()
    print(await (await generator._next_async(timeout_s=20)))
    try:
        await generator._next_async(timeout_s=20)
    except StopAsyncIteration:
        print("StopAsyncIteration")


asyncio.run(main())
