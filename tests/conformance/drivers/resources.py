# cluster_resources and available_resources, and what a running task takes of them.
import time
import ray


@ray.remote(num_cpus=2, resources={"a": 1})
class A:
    def m(self):
        return 1


ray.init(num_cpus=3, num_gpus=1, resources={"a": 1, "b": 2}, include_dashboard=False)
total = ray.cluster_resources()
print({k: v for k, v in sorted(total.items()) if k in ("CPU", "GPU", "a", "b")})
print(sorted(k.split(":")[0] for k in total))
a = A.remote()
ray.get(a.m.remote())
for _ in range(500):
    free = ray.available_resources()
    if free.get("CPU") == 1:
        break
    time.sleep(0.02)
print({k: v for k, v in sorted(free.items()) if k in ("CPU", "GPU", "a", "b")})
