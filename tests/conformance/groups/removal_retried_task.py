# A task that the removal ended is retried, and then waits in the removed group.
import time
import ray
from conform import show
from ray.util import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from waiting import Flag, await_flag


@ray.remote(max_retries=1)
def run(started):
    started.raise_it.remote()
    time.sleep(600)


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
started = Flag.remote()
group = placement_group([{"CPU": 1}])
ref = run.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group)).remote(started)
await_flag(started)
remove_placement_group(group)
show("task", lambda: ray.get(ref, timeout=3))
show("started", lambda: ray.get(started.count.remote()))
