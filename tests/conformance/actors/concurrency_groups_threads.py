# Each concurrency group of a threaded actor has its own number of threads.
import threading
import ray


@ray.remote(concurrency_groups={"io": 1})
class A:
    def __init__(self):
        self.event = threading.Event()

    @ray.method(concurrency_group="io")
    def block(self):
        return self.event.wait(20)

    def open(self):
        self.event.set()
        return "opened"


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
blocked = a.block.remote()
print(ray.get(a.open.remote()), ray.get(blocked))
