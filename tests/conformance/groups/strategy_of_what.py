# PlacementGroupSchedulingStrategy holds a group, None or "default".
import ray
from conform import show
from ray.util import get_current_placement_group, placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

ray.init(num_cpus=1, include_dashboard=False)
group = placement_group([{"CPU": 1}])
f = ray.remote(get_current_placement_group)
for value in (None, "default", "x", 5, group.id):
    strategy = PlacementGroupSchedulingStrategy(value)
    task = f.options(scheduling_strategy=strategy, num_cpus=0)
    show(type(value).__name__, lambda: ray.get(task.remote()))
strategy = PlacementGroupSchedulingStrategy(group)
print(
    strategy.placement_group == group,
    strategy.placement_group_bundle_index,
    strategy.placement_group_capture_child_tasks,
)
show("run", lambda: ray.get(f.options(scheduling_strategy=strategy).remote()) == group)
