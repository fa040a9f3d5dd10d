# An actor without num_cpus needs a CPU of the bundle to start and holds none of it.
import ray
from conform import show
from ray.util import get_current_placement_group, placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


@ray.remote
class A:
    def m(self):
        return get_current_placement_group() is not None


ray.init(num_cpus=2, resources={"x": 1}, include_dashboard=False)
group = placement_group([{"CPU": 1}, {"x": 1}])
actors = [
    A.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, 0)).remote()
    for _ in range(3)
]
show("three in a bundle", lambda: ray.get([a.m.remote() for a in actors], timeout=120))
without = placement_group([{"x": 0.1}])
small = A.options(scheduling_strategy=PlacementGroupSchedulingStrategy(without))
show("no CPU in the group", small.remote, "cannot fit into any bundles")
ones = A.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, 1), num_cpus=0)
a = ones.remote()
show("asks for none", lambda: ray.get(a.m.remote(), timeout=120))
