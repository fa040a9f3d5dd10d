# In a coroutine the runtime context is that of its own task.
import asyncio
import ray


@ray.remote
class A:
    async def m(self):
        before = ray.get_runtime_context().get_task_id()
        await asyncio.sleep(0.05)
        return before == ray.get_runtime_context().get_task_id(), before


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
results = ray.get([a.m.remote() for _ in range(4)])
print([same for same, _ in results], len({task for _, task in results}))
