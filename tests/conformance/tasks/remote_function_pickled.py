# A remote function pickled by hand works after it is loaded.
import ray
import ray.cloudpickle as cloudpickle


@ray.remote(num_returns=2)
def f(x):
    return x, x + 1


ray.init(num_cpus=1, include_dashboard=False)
print(ray.get(f.remote(1)))
again = cloudpickle.loads(cloudpickle.dumps(f))
print(ray.get(again.remote(5)))
