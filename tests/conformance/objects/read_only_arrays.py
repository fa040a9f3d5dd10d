# Arrays from get are read-only at any size; copies are not.
import numpy as np
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
for size in (3, 1_000_000):
    array = ray.get(ray.put(np.arange(size)))
    print(size, array.flags.writeable, array.flags.owndata)
    show("write", lambda: array.__setitem__(0, 5))
    copy = array.copy()
    copy[0] = 5
    print(copy[0] == 5, array[0] == 0)
nested = ray.get(ray.put({"a": [np.zeros(2), np.ones(500_000)]}))
print([a.flags.writeable for a in nested["a"]])
