# An actor that waits in a bundle fails when the group is removed.
import ray
from conform import show
from ray.util import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


@ray.remote(num_cpus=1)
class A:
    def m(self):
        return 1


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
group = placement_group([{"CPU": 1}])
strategy = PlacementGroupSchedulingStrategy(group)
first = A.options(scheduling_strategy=strategy).remote()
show("first", lambda: ray.get(first.m.remote(), timeout=120))
second = A.options(scheduling_strategy=strategy).remote()
call = second.m.remote()
show("waits", lambda: ray.get(call, timeout=1))
remove_placement_group(group)
show("call", lambda: ray.get(call, timeout=120), "placement group", "removed")
show("next call", lambda: ray.get(second.m.remote(), timeout=120), "placement group", "removed")
