# An actor class can be an argument.
import ray


@ray.remote
class A:
    def __init__(self, x):
        self.x = x

    def m(self):
        return self.x


@ray.remote
def make(cls):
    return ray.get(cls.options(num_cpus=0).remote(5).m.remote())


ray.init(num_cpus=1, include_dashboard=False)
print(ray.get(make.remote(A)))
