# Refs can be copied and deep-copied.
import copy
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
ref = ray.put(5)
show("copy", lambda: copy.copy(ref) == ref)
show("deepcopy", lambda: ray.get(copy.deepcopy([ref])[0]))
