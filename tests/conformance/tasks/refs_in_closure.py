# A ref captured by a remote function stays alive and is usable in the task.
import ray

ray.init(num_cpus=1, include_dashboard=False)
ref = ray.put([1, 2, 3])


@ray.remote
def f():
    return sum(ray.get(ref))


result = f.remote()
del ref
print(ray.get(result))
