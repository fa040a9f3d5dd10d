# A task in a group can make another group, and gives it away.
import ray
from conform import show
from ray.util import get_current_placement_group, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


@ray.remote
def make(outer):
    group = placement_group([{"CPU": 1}], name="inner")
    ray.get(group.ready())
    return group, get_current_placement_group() == outer


f = ray.remote(get_current_placement_group)
ray.init(num_cpus=3, include_dashboard=False)
outer = placement_group([{"CPU": 1}])
strategy = PlacementGroupSchedulingStrategy(outer, 0, True)
inner, same = ray.get(make.options(scheduling_strategy=strategy).remote(outer))
show("still in the outer one", lambda: same)
show("specs", lambda: (inner.bundle_specs, inner.wait(30)))
task = f.options(scheduling_strategy=PlacementGroupSchedulingStrategy(inner))
show("used", lambda: ray.get(task.remote()) == inner)
show("removed", lambda: remove_placement_group(inner))
