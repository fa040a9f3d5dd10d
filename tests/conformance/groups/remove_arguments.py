# remove_placement_group takes groups, also removed ones.
import ray
from conform import show
from ray.util import placement_group, remove_placement_group

ray.init(num_cpus=1, include_dashboard=False)
group = placement_group([{"CPU": 1}])
show("wait", lambda: group.wait(30))
show("remove", lambda: remove_placement_group(group))
show("again", lambda: remove_placement_group(group))
show("a copy", lambda: remove_placement_group(type(group)(group.id)))
for other in ("x", None, group.id):
    show(type(other).__name__, lambda: remove_placement_group(other))
