# A group whose bundles fit one by one, but not together.
import ray
from conform import show
from ray.util import placement_group, placement_group_table
from waiting import until

ray.init(num_cpus=2, include_dashboard=False)
for strategy in ("PACK", "SPREAD", "STRICT_PACK"):
    group = placement_group([{"CPU": 1}] * 3, strategy=strategy)
    show(strategy, lambda: group.wait(1))

    def outcome():
        entry = placement_group_table(group)
        return entry["state"], entry["stats"]["scheduling_state"]

    until(lambda: outcome()[1] in ("INFEASIBLE", "NO_RESOURCES"))
    print(*outcome())
