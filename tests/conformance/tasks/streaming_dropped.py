# A dropped generator frees the worker: the next task runs.
import ray


@ray.remote
def f():
    for i in range(5):
        yield i


ray.init(num_cpus=1, include_dashboard=False)
generator = f.remote()
print(ray.get(next(generator)))
del generator
print(ray.get(ray.remote(lambda: "next").remote()))
