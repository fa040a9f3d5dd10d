# An actor made by an actor dies with it, unless it is detached.
import time
import ray


@ray.remote
class Child:
    def m(self):
        return 1


@ray.remote
class Parent:
    def make(self):
        self.keep = [
            Child.options(name="owned").remote(),
            Child.options(name="free", lifetime="detached").remote(),
        ]
        return ray.get([child.m.remote() for child in self.keep])


ray.init(num_cpus=1, include_dashboard=False)
parent = Parent.remote()
print(ray.get(parent.make.remote()))
ray.kill(parent)
for _ in range(1000):
    try:
        ray.get_actor("owned")
        time.sleep(0.02)
    except ValueError:
        print("owned is gone")
        break
print(ray.get(ray.get_actor("free").m.remote()))
