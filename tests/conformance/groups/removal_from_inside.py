# A task removes the group in which it runs.
import time
import ray
from conform import show
from ray.util import placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


@ray.remote(max_retries=0)
def remove(group):
    remove_placement_group(group)
    time.sleep(600)


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
group = placement_group([{"CPU": 1}])
task = remove.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group))
show("task", lambda: ray.get(task.remote(group), timeout=120))
show("table", lambda: placement_group_table(group)["state"])
