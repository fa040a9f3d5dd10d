# Placement groups: ready, wait, names, the table, removal.
import time
import ray
from conform import show
from ray.util import (
    get_placement_group,
    placement_group,
    placement_group_table,
    remove_placement_group,
)

ray.init(num_cpus=2, include_dashboard=False)
group = placement_group([{"CPU": 1}], name="mine", strategy="STRICT_PACK")
show("wait", lambda: group.wait(20))
show("found", lambda: get_placement_group("mine").id == group.id)
show("unknown", lambda: get_placement_group("none"))
show("empty name", lambda: get_placement_group(""))


def table():
    entry = placement_group_table(group)
    return sorted(entry), entry["name"], entry["strategy"], entry["state"], entry["bundles"]


show("table", table)
show("all", lambda: len(placement_group_table()))
big = placement_group([{"CPU": 50}])
show("infeasible wait", lambda: big.wait(0.3))
show("infeasible ready", lambda: ray.get(big.ready(), timeout=0.3))
remove_placement_group(group)
for _ in range(500):
    if placement_group_table(group)["state"] == "REMOVED":
        break
    time.sleep(0.02)
show("removed", lambda: placement_group_table(group)["state"])
show("remove again", lambda: remove_placement_group(group))
