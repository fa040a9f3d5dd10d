# A global is captured at the first export: later changes in the driver are not seen.
import ray

level = 1


@ray.remote
def f():
    return level


ray.init(num_cpus=1, include_dashboard=False)
print(ray.get(f.remote()))
level = 2
print(ray.get(f.remote()))
print(ray.get(f.options(name="again").remote()))


@ray.remote
def f():
    return level


print(ray.get(f.remote()))
