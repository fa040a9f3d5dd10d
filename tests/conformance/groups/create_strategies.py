# Each strategy creates a group; the table tells the strategy.
import ray
from conform import show
from ray.util import placement_group, placement_group_table, remove_placement_group

ray.init(num_cpus=2, include_dashboard=False)
for strategy in ("PACK", "SPREAD", "STRICT_PACK", None):
    group = placement_group([{"CPU": 1}, {"CPU": 1}], strategy=strategy)
    show(f"{strategy} created", lambda: group.wait(30))
    show(f"{strategy} in the table", lambda: placement_group_table(group)["strategy"])
    remove_placement_group(group)
