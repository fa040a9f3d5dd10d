# An actor that is created in a removed group.
import ray
from conform import show
from ray.util import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from waiting import until


@ray.remote(num_cpus=1)
class A:
    def m(self):
        return 1


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
group = placement_group([{"CPU": 1}])
ray.get(group.ready())
remove_placement_group(group)
until(lambda: ray.available_resources().get("CPU") == 2)
a = A.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group)).remote()
show("call", lambda: ray.get(a.m.remote(), timeout=3))
