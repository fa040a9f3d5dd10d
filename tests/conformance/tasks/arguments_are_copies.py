# A task that mutates its argument mutates a copy, even if the argument is a put object.
import ray


@ray.remote
def f(x):
    x.append(1)
    return x


ray.init(num_cpus=1, include_dashboard=False)
mine = []
ref = ray.put(mine)
print(ray.get(f.remote(mine)), mine)
print(ray.get(f.remote(ref)), ray.get(f.remote(ref)), ray.get(ref))
