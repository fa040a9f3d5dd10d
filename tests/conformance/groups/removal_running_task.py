# The removal of a group ends its running tasks; without retries they fail as crashed.
import time
import ray
from conform import show
from ray.util import placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from waiting import Flag, await_flag, until


@ray.remote(max_retries=0)
def run(started):
    started.raise_it.remote()
    time.sleep(600)


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
started = Flag.remote()
group = placement_group([{"CPU": 1}])
ref = run.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group)).remote(started)
await_flag(started)
show("remove", lambda: remove_placement_group(group))
show("task", lambda: ray.get(ref, timeout=120))
show("table", lambda: placement_group_table(group)["state"])
until(lambda: ray.available_resources().get("CPU") == 2)
show("others", lambda: ray.get(ray.remote(num_cpus=2)(lambda: 1).remote(), timeout=120))
