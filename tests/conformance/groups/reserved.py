# Tasks outside a group cannot use what it reserves.
import ray
from conform import show
from ray.util import placement_group, remove_placement_group

ray.init(num_cpus=2, include_dashboard=False)
group = placement_group([{"CPU": 2}])
ray.get(group.ready())
ref = ray.remote(lambda: 1).remote()
show("waits", lambda: ray.get(ref, timeout=1))
remove_placement_group(group)
show("then", lambda: ray.get(ref, timeout=120))
