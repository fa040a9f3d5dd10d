# Cancelling a finished task does nothing, even if it is repeated or forced.
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
ref = ray.remote(lambda: 1).remote()
ray.get(ref)
show("cancel", lambda: ray.cancel(ref))
show("force", lambda: ray.cancel(ref, force=True))
show("value", lambda: ray.get(ref))
show("put object", lambda: ray.cancel(ray.put(1)))
