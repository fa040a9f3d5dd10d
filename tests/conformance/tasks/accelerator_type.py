# accelerator_type adds a demand that only nodes with that accelerator satisfy.
import ray
from conform import show

ray.init(num_cpus=1, resources={"accelerator_type:X1": 1}, include_dashboard=False)
f = ray.remote(lambda: sorted(ray.get_runtime_context().get_assigned_resources()))
show("present", lambda: ray.get(f.options(accelerator_type="X1").remote()))
show("absent", lambda: ray.get(f.options(accelerator_type="X2").remote(), timeout=0.5))
