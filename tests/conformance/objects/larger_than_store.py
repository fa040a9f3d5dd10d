# More data than the store holds is spilled, and all of it can be read.
import numpy as np
import ray

ray.init(num_cpus=1, object_store_memory=80 * 1024 * 1024, include_dashboard=False)
refs = [ray.put(np.full(1_250_000, i)) for i in range(20)]
print([int(ray.get(ref)[0]) for ref in refs] == list(range(20)))
