# An object freed by hand.
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
ref = ray.put(bytes(1_000_000))
from ray._private.internal_api import free
show("free", lambda: free([ref]))
show("get", lambda: ray.get(ref, timeout=10))
