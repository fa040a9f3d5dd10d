# PlacementGroup.empty() is no group.
import ray
from conform import show
from ray.util import placement_group_table, remove_placement_group
from ray.util.placement_group import PlacementGroup
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

ray.init(num_cpus=1, include_dashboard=False)
empty = PlacementGroup.empty()
show("empty", lambda: (empty.is_empty, empty == PlacementGroup.empty(), empty.id.is_nil()))
show("wait", lambda: empty.wait(1))
show("remove", lambda: remove_placement_group(empty))
show("table", lambda: placement_group_table(empty))
f = ray.remote(lambda: ray.util.get_current_placement_group())
show(
    "strategy",
    lambda: ray.get(
        f.options(scheduling_strategy=PlacementGroupSchedulingStrategy(empty)).remote()
    ),
)
show("option", lambda: ray.get(f.options(placement_group=empty).remote()))
