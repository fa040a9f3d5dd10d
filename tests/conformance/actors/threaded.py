# With max_concurrency, calls of a plain class overlap in a pool of threads.
import threading
import ray


@ray.remote(max_concurrency=2)
class A:
    def __init__(self):
        self.barrier = threading.Barrier(2)

    def meet(self):
        return self.barrier.wait(timeout=120) in (0, 1)


ray.init(num_cpus=1, include_dashboard=False)
a = A.remote()
print(ray.get([a.meet.remote(), a.meet.remote()]))
