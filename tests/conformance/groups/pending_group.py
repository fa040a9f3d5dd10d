# Tasks and actors wait for their group, and run when it is created.
import ray
from conform import show
from ray.util import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


@ray.remote(num_cpus=1)
class A:
    def m(self):
        return ray.util.get_current_placement_group()


f = ray.remote(lambda: ray.util.get_current_placement_group())
ray.init(num_cpus=2, include_dashboard=False)
first = placement_group([{"CPU": 2}])
ray.get(first.ready())
group = placement_group([{"CPU": 1}, {"CPU": 1}])
strategy = PlacementGroupSchedulingStrategy(group, 0)
task = f.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, 1)).remote()
a = A.options(scheduling_strategy=strategy).remote()
call = a.m.remote()
show("wait", lambda: len(ray.wait([task, call], num_returns=2, timeout=1)[0]))
remove_placement_group(first)
show("then", lambda: [current == group for current in ray.get([task, call], timeout=120)])
