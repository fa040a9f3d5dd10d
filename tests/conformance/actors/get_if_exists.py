# get_if_exists returns the first actor and ignores the arguments.
import ray


@ray.remote
class A:
    def __init__(self, x):
        self.x = x

    def m(self):
        return self.x


ray.init(num_cpus=1, include_dashboard=False)
one = A.options(name="a", get_if_exists=True).remote(1)
two = A.options(name="a", get_if_exists=True).remote(2)
print(one == two, ray.get(two.m.remote()))
