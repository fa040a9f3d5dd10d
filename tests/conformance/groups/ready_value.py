# ready() gives a ref whose value is the group.
import ray
from conform import show
from ray.util import placement_group

ray.init(num_cpus=1, include_dashboard=False)
group = placement_group([{"CPU": 1}])
show("type", lambda: type(group.ready()).__name__)
value = ray.get(group.ready())
show("value", lambda: (value == group, type(value).__name__, value.bundle_specs))
show("waited for", lambda: [len(refs) for refs in ray.wait([group.ready()], timeout=120)])
show("passed", lambda: ray.get(ray.remote(num_cpus=0)(lambda x: x).remote(group.ready())) == group)
