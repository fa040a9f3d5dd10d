# A group can be named in the decorator, and other options then replace it.
import ray
from conform import show
from ray.util import get_current_placement_group, placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

ray.init(num_cpus=2, include_dashboard=False)
group = placement_group([{"CPU": 1}])


@ray.remote(scheduling_strategy=PlacementGroupSchedulingStrategy(group))
def f():
    return get_current_placement_group()


@ray.remote(placement_group=group, num_cpus=0.5)
class A:
    def m(self):
        return get_current_placement_group()


show("task", lambda: ray.get(f.remote()) == group)
show("other name", lambda: ray.get(f.options(name="n").remote()) == group)
show("DEFAULT", lambda: ray.get(f.options(scheduling_strategy="DEFAULT").remote()))
a = A.remote()
show("actor", lambda: ray.get(a.m.remote()) == group)
show("a string", lambda: ray.remote(placement_group="x")(lambda: 1) and "accepted")
show("a number", lambda: ray.remote(placement_group=5)(lambda: 1), "placement_group")
