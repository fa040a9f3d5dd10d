# A handle passed into tasks, actors and objects works and keeps the actor alive.
import ray


@ray.remote
class Counter:
    def __init__(self):
        self.n = 0

    def up(self):
        self.n += 1
        return self.n


@ray.remote
class Holder:
    def __init__(self, box):
        self.counter = box["counter"]

    def up(self):
        return ray.get(self.counter.up.remote())


@ray.remote
def use(counter):
    return ray.get(counter.up.remote())


ray.init(num_cpus=2, include_dashboard=False)
counter = Counter.remote()
print(ray.get(use.remote(counter)))
holder = Holder.remote({"counter": counter})
stored = ray.put([counter])
print(ray.get(holder.up.remote()))
del counter
print(ray.get(ray.get(stored)[0].up.remote()), ray.get(holder.up.remote()))
