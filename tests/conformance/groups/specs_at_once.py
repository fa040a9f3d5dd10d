# The specs of a group are there at once, and stay after its removal.
import ray
from conform import show
from ray.util import placement_group, remove_placement_group

ray.init(num_cpus=1, include_dashboard=False)
for bundles in ([{"CPU": 1}], [{"CPU": 50}, {"x": 2}]):
    group = placement_group(bundles)
    show("specs", lambda: (group.bundle_specs, group.bundle_count, group.is_empty))
    remove_placement_group(group)
    show("removed", lambda: (group.bundle_specs, group.bundle_count, group.is_empty))
