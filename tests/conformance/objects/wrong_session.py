# A ref of an earlier session is refused.
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
ref = ray.put(1)
done = ray.remote(lambda: 2).remote()
ray.get(done)
ray.shutdown()
ray.init(num_cpus=1, include_dashboard=False)
show("put", lambda: ray.get(ref, timeout=3))
show("result", lambda: ray.get(done, timeout=3))
