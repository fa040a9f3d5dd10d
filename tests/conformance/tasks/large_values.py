# Arguments and results of some megabytes work, and arrays among them are read-only.
import numpy as np
import ray


@ray.remote
def f(array):
    return array.flags.writeable, array + 1, array[:10]


ray.init(num_cpus=1, include_dashboard=False)
for size in (10, 1_000_000):
    writeable, result, part = ray.get(f.remote(np.zeros(size)))
    print(
        writeable, result.shape, float(result.sum()), result.flags.writeable, part.flags.writeable
    )
