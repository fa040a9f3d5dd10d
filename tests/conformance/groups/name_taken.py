# A name can be taken once in a namespace, and is free again after the removal.
import ray
from conform import show
from ray.util import placement_group, placement_group_table, remove_placement_group

ray.init(num_cpus=2, include_dashboard=False)
group = placement_group([{"CPU": 1}], name="a")
show("created", lambda: group.wait(30))
show("equal", lambda: placement_group([{"CPU": 1}], name="a"), "already exists", "'a'")
show("other", lambda: placement_group([{"CPU": 2}], name="a"), "already exists", "'a'")
pending = placement_group([{"CPU": 50}], name="b")
show("pending", lambda: placement_group([{"CPU": 1}], name="b"), "already exists", "'b'")
show("table", lambda: sorted(row["name"] for row in placement_group_table().values()))
remove_placement_group(group)
remove_placement_group(pending)
show("free", lambda: placement_group([{"CPU": 1}], name="a").wait(30))
show("free again", lambda: placement_group([{"CPU": 1}], name="b").wait(30))
