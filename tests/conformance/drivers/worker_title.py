# The process titles of workers say what they run.
import os
import ray


def title():
    return open("/proc/self/cmdline").read().split("\0")[0].split(" ")[0]


@ray.remote
def f():
    return title()


@ray.remote
class A:
    def m(self):
        return title()


ray.init(num_cpus=1, include_dashboard=False)
print(
    ray.get(f.remote()), ray.get(A.remote().m.remote()), ray.get(f.options(name="named").remote())
)
