# Refs among constructor arguments become values, nested refs stay, keywords work.
import ray


@ray.remote
class A:
    def __init__(self, x, box, *, y):
        self.all = x, ray.get(box[0]), y

    def m(self):
        return self.all


ray.init(num_cpus=1, include_dashboard=False)
print(ray.get(A.remote(ray.put(1), [ray.put(2)], y=ray.put(3)).m.remote()))
