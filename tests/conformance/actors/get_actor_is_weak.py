# A handle from get_actor does not keep the actor alive.
import time
import ray


@ray.remote
class A:
    def m(self):
        return 1


ray.init(num_cpus=1, include_dashboard=False)
a = A.options(name="a").remote()
weak = ray.get_actor("a")
print(ray.get(weak.m.remote()))
del a
for _ in range(1000):
    try:
        ray.get_actor("a")
    except ValueError as error:
        print(type(error).__name__)
        break
    time.sleep(0.02)
