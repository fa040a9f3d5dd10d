# A group whose id nobody registered.
import ray
from conform import show
from ray.util import placement_group_table, remove_placement_group
from ray.util.placement_group import PlacementGroup

ray.init(num_cpus=1, include_dashboard=False)
group = PlacementGroup(ray.PlacementGroupID.from_random())
show("wait", lambda: group.wait(1))
show("table", lambda: placement_group_table(group))
show("remove", lambda: remove_placement_group(group))
show("specs", lambda: group.bundle_specs)
show("ready", lambda: ray.get(group.ready(), timeout=1))
