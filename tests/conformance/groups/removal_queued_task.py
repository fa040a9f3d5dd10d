# A task that waits in a bundle fails when the group is removed.
import time
import ray
from conform import show
from ray.util import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from waiting import Flag, await_flag


@ray.remote(max_retries=0)
def run(started):
    started.raise_it.remote()
    time.sleep(600)


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
started = Flag.remote()
group = placement_group([{"CPU": 1}])
strategy = PlacementGroupSchedulingStrategy(group)
running = run.options(scheduling_strategy=strategy).remote(started)
await_flag(started)
queued = ray.remote(lambda: 1).options(scheduling_strategy=strategy).remote()
show("waits", lambda: ray.get(queued, timeout=1))
remove_placement_group(group)
show("queued", lambda: ray.get(queued, timeout=120), "has been removed")
show("running", lambda: ray.get(running, timeout=120))
