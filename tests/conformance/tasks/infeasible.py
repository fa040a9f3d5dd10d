# A task that no node can run waits, while others run.
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
f = ray.remote(lambda: 1)
show("too many CPUs", lambda: ray.get(f.options(num_cpus=100).remote(), timeout=0.5))
show("unknown resource", lambda: ray.get(f.options(resources={"none": 1}).remote(), timeout=0.5))
show("others", lambda: ray.get(f.remote()))
