# One object that is larger than the whole store.
import numpy as np
import ray

ray.init(num_cpus=1, object_store_memory=80 * 1024 * 1024, include_dashboard=False)
ref = ray.put(np.zeros(15_000_000))
print(ray.get(ref).nbytes)
