# The room of a removed group goes to the group that waits for it, although a task ran in it.
import time
import ray
from conform import show
from ray.util import get_current_placement_group, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from waiting import Flag, await_flag


@ray.remote(max_retries=0)
def run(started):
    started.raise_it.remote()
    time.sleep(600)


ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
started = Flag.remote()
first, second = placement_group([{"CPU": 1}]), placement_group([{"CPU": 1}])
run.options(scheduling_strategy=PlacementGroupSchedulingStrategy(first)).remote(started)
await_flag(started)
f = ray.remote(get_current_placement_group)
ref = f.options(scheduling_strategy=PlacementGroupSchedulingStrategy(second)).remote()
show("waits", lambda: ray.get(ref, timeout=1))
remove_placement_group(first)
show("then", lambda: ray.get(ref, timeout=120) == second)
