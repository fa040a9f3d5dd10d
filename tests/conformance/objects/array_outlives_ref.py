# A view keeps the memory after its ref is gone, and under pressure.
import numpy as np
import ray

ray.init(num_cpus=1, object_store_memory=100 * 1024 * 1024, include_dashboard=False)
view = ray.get(ray.put(np.full(1_000_000, 7)))
for i in range(20):
    ray.put(np.full(1_000_000, i))
print(int(view.sum()))
