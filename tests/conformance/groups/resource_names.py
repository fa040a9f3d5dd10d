# The names of resources while there is a group.
import ray
from ray.util import placement_group
from waiting import until

ray.init(num_cpus=2, include_dashboard=False)
group = placement_group([{"CPU": 1}])
ray.get(group.ready())
until(lambda: ray.available_resources().get("CPU") == 1)
for function in (ray.cluster_resources, ray.available_resources):
    names = (name.replace(group.id.hex(), "<id>") for name in function())
    print(sorted(name for name in names if not name.startswith("node:")))
