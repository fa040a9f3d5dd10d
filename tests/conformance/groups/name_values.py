# The name of a group is a string; the empty one is none.
import ray
from conform import show
from ray.util import get_placement_group, placement_group, placement_group_table

ray.init(num_cpus=1, include_dashboard=False)
for name in (5, None):
    show(repr(name), lambda: placement_group([{"CPU": 0.1}], name=name))
for name in ("", "a b", "x" * 1000, "ä"):
    group = placement_group([{"CPU": 0.1}], name=name)
    show(f"{name[:5]!r} wait", lambda: group.wait(30))
    show(f"{name[:5]!r} table", lambda: placement_group_table(group)["name"] == name)
show("two without a name", lambda: placement_group([{"CPU": 0.1}]).wait(30))
show("found", lambda: get_placement_group("a b").bundle_count)
