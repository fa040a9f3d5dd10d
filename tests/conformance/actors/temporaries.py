# A handle may be a temporary: its actor lives until the call ends.
import time
import ray


@ray.remote
class A:
    def __init__(self, x):
        self.x = x

    def m(self):
        time.sleep(0.1)
        return self.x


ray.init(num_cpus=1, include_dashboard=False)
print(ray.get([A.options(num_cpus=0).remote(i).m.remote() for i in range(3)]))
