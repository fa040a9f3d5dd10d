# A task that crashes is retried in its bundle.
import os
import ray
from conform import show
from ray.util import get_current_placement_group, placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from waiting import Flag


@ray.remote(max_retries=2)
def crash_once(tries):
    ray.get(tries.raise_it.remote())
    if ray.get(tries.count.remote()) == 1:
        os._exit(1)
    return get_current_placement_group()


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
tries = Flag.remote()
group = placement_group([{"CPU": 1}])
task = crash_once.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group))
show("group", lambda: ray.get(task.remote(tries), timeout=120) == group)
show("tries", lambda: ray.get(tries.count.remote()))
