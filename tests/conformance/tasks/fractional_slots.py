# As many tasks with fractions of a CPU run at once as fit.
import time
import ray


@ray.remote
class Meter:
    def __init__(self):
        self.now = self.most = 0

    def enter(self):
        self.now += 1
        self.most = max(self.most, self.now)

    def leave(self):
        self.now -= 1

    def read(self):
        return self.most


@ray.remote(num_cpus=0, resources={"slot": 0.5})
def f(meter):
    ray.get(meter.enter.remote())
    time.sleep(0.2)
    ray.get(meter.leave.remote())


ray.init(num_cpus=1, resources={"slot": 1}, include_dashboard=False)
meter = Meter.remote()
ray.get([f.remote(meter) for _ in range(6)])
print(ray.get(meter.read.remote()) <= 2)
