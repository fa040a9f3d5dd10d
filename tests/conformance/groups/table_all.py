# placement_group_table() lists all groups by id, also removed ones.
import ray
from conform import show
from ray.util import placement_group, placement_group_table, remove_placement_group
from waiting import until

ray.init(num_cpus=2, include_dashboard=False)
show("none", placement_group_table)
groups = [placement_group([{"CPU": 1}], name=name) for name in ("a", "b")]
groups.append(placement_group([{"CPU": 50}], name="c"))
until(lambda: groups[0].wait(1) and groups[1].wait(1))
remove_placement_group(groups[0])
until(lambda: placement_group_table(groups[0])["state"] == "REMOVED")
table = placement_group_table()
show("keys", lambda: set(table) == {group.id.hex() for group in groups})
show("states", lambda: sorted((row["name"], row["state"]) for row in table.values()))
show("None", lambda: len(placement_group_table(None)))
show("a string", lambda: placement_group_table("x"))
