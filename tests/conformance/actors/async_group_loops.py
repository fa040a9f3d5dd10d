# Each concurrency group of an asyncio actor has an event loop and a thread of its own.
import asyncio
import threading
import ray


@ray.remote(concurrency_groups={"health": 1, "work": 1})
class Worker:
    def __init__(self):
        self.go = threading.Event()

    @ray.method(concurrency_group="health")
    async def ping(self):
        return "pong", threading.current_thread().name

    @ray.method(concurrency_group="work")
    async def work(self):
        return self.go.wait(30), threading.current_thread().name

    async def other(self):
        await asyncio.sleep(0.01)
        return threading.current_thread().name

    @ray.method(concurrency_group="health")
    def release(self):
        self.go.set()
        return threading.current_thread().name

    def loops(self):
        return id(asyncio.get_event_loop())

    @ray.method(concurrency_group="health")
    async def loop_of_health(self):
        return id(asyncio.get_running_loop())


ray.init(num_cpus=1, include_dashboard=False)
worker = Worker.remote()
print(ray.get(worker.ping.remote()))
blocked = worker.work.remote()
print(ray.get([worker.ping.remote(), worker.other.remote()], timeout=120))
print(ray.get(worker.release.remote(), timeout=120), ray.get(blocked, timeout=120))
print(ray.get(worker.loops.remote()) == ray.get(worker.loop_of_health.remote()))
