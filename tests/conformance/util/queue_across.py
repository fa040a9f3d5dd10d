# A Queue works between tasks and with async calls, and can be shut down.
import asyncio
import ray
from conform import show
from ray.util.queue import Queue


@ray.remote
def produce(queue, n):
    for i in range(n):
        queue.put(i)


@ray.remote
def consume(queue, n):
    return [queue.get() for _ in range(n)]


ray.init(num_cpus=2, include_dashboard=False)
queue = Queue(actor_options={"num_cpus": 0})
produce.remote(queue, 5)
print(ray.get(consume.remote(queue, 5)))


async def main():
    await queue.put_async("a")
    return await queue.get_async()


print(asyncio.run(main()))
queue.shutdown()
show("after", lambda: queue.put(1))
