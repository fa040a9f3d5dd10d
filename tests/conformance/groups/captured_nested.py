# Captured children capture as well, at any depth.
import ray
from ray.util import get_current_placement_group, placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


@ray.remote(num_cpus=0.1)
def nested(group, depth):
    here = (
        get_current_placement_group() == group,
        ray.get_runtime_context().should_capture_child_tasks_in_placement_group,
    )
    return [here] + (ray.get(nested.remote(group, depth - 1)) if depth else [])


ray.init(num_cpus=2, include_dashboard=False)
group = placement_group([{"CPU": 1}])
for captures in (True, False):
    strategy = PlacementGroupSchedulingStrategy(group, 0, captures)
    print(captures, ray.get(nested.options(scheduling_strategy=strategy).remote(group, 2)))
