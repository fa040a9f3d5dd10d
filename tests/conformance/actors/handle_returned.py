# A handle that a task made and returned keeps its actor alive after the task.
import ray


@ray.remote
class A:
    def m(self):
        return "alive"


@ray.remote
def make():
    a = A.options(num_cpus=0).remote()
    return a, [a]


ray.init(num_cpus=1, include_dashboard=False)
a, box = ray.get(make.remote())
print(ray.get(a.m.remote()), box[0] == a)
