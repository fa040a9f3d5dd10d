# Tasks can define and call functions and actors of their own.
import ray


@ray.remote
def outer():
    @ray.remote
    def inner(x):
        return x + 1

    @ray.remote
    class Counter:
        def __init__(self):
            self.n = 0

        def up(self):
            self.n += 1
            return self.n

    counter = Counter.remote()
    counter.up.remote()
    return ray.get(inner.remote(1)), ray.get(counter.up.remote())


ray.init(num_cpus=2, include_dashboard=False)
print(ray.get(outer.remote()))
