# An actor that may restart does not come back after the removal of its group.
import ray
from conform import show
from ray.util import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


@ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=-1)
class A:
    def m(self):
        return 1


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
group = placement_group([{"CPU": 1}])
a = A.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group)).remote()
show("before", lambda: ray.get(a.m.remote(), timeout=120))
remove_placement_group(group)
show("after", lambda: [ray.get(a.m.remote(), timeout=3) for _ in range(1_000_000)] and "alive")
