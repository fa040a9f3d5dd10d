# An actor in a placement group dies when the group is removed.
import ray
from conform import show
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


@ray.remote(num_cpus=1)
class A:
    def m(self):
        return 1


ray.init(num_cpus=1, include_dashboard=False)
group = placement_group([{"CPU": 1}])
a = A.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group)).remote()
show("inside", lambda: ray.get(a.m.remote()))
remove_placement_group(group)
show(
    "removed",
    lambda: [ray.get(a.m.remote(), timeout=120) for _ in range(10_000)] and "alive",
    "placement group",
)
