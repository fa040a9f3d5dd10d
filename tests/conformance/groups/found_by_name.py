# get_placement_group finds named groups, also those that wait for room.
import ray
from conform import show
from ray.util import get_placement_group, placement_group, remove_placement_group

ray.init(num_cpus=1, include_dashboard=False)
group = placement_group([{"CPU": 1}], name="a")
found = get_placement_group("a")
show("found", lambda: (found == group, found is group, found.bundle_specs, found.bundle_count))
show("wait", lambda: found.wait(30))
pending = placement_group([{"CPU": 50}], name="b")
show("pending", lambda: get_placement_group("b") == pending)
show(
    "in a task",
    lambda: ray.get(ray.remote(get_placement_group).options(num_cpus=0).remote("a")) == group,
)
for name in ("", None):
    show(repr(name), lambda: get_placement_group(name), "non-empty")
show("unknown", lambda: get_placement_group("unknown"), "Failed to look up", "unknown")
show("number", lambda: get_placement_group(5))
remove_placement_group(found)
show("removed", lambda: get_placement_group("a"), "Failed to look up", "a")
