# The removal of a group ends its actors: running, queued and later calls fail.
import time
import ray
from conform import show
from ray.util import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from waiting import Flag, await_flag


@ray.remote(num_cpus=1)
class A:
    def hang(self, started):
        started.raise_it.remote()
        time.sleep(600)

    def m(self):
        return 1


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
for label, options in (
    ("plain", {}),
    ("detached", {"name": "d", "namespace": "n", "lifetime": "detached"}),
):
    started = Flag.remote()
    group = placement_group([{"CPU": 1}])
    strategy = PlacementGroupSchedulingStrategy(group)
    a = A.options(scheduling_strategy=strategy, **options).remote()
    running = a.hang.remote(started)
    await_flag(started)
    queued = a.m.remote()
    remove_placement_group(group)
    show(f"{label}: running", lambda: ray.get(running, timeout=120), "placement group was removed")
    show(f"{label}: queued", lambda: ray.get(queued, timeout=120), "placement group was removed")
    show(f"{label}: later", lambda: ray.get(a.m.remote(), timeout=120), "placement group")
show("name", lambda: ray.get_actor("d", "n"), "Failed to look up actor")
