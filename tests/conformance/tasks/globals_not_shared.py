# Changes of globals in a task stay in its worker: the driver does not see them.
import ray

seen = []


@ray.remote
def f(x):
    seen.append(x)
    return len(seen) >= 1


ray.init(num_cpus=1, include_dashboard=False)
print(ray.get([f.remote(i) for i in range(3)]), seen)
