# Items of a stream may be too large for messages and may outlive the generator.
import numpy as np
import ray


@ray.remote
def f():
    for i in range(3):
        yield np.full(100_000, i)


ray.init(num_cpus=1, include_dashboard=False)
refs = list(f.remote())
print([int(ray.get(ref).sum()) for ref in refs], ray.get(refs[0]).flags.writeable)
