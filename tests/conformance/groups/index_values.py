# A bundle index is -1 (any bundle) or that of a bundle; others are refused when the call is made.
import ray
from conform import show
from ray.util import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


@ray.remote(num_cpus=1)
class A:
    def m(self):
        return 1


ray.init(num_cpus=2, include_dashboard=False)
group = placement_group([{"CPU": 1}, {"CPU": 1}])
f = ray.remote(lambda: 1)
for index in (-1, 0, 1, True):
    strategy = PlacementGroupSchedulingStrategy(group, index)
    show(f"task {index!r}", lambda: ray.get(f.options(scheduling_strategy=strategy).remote()))
for index in (2, -2, None, "0"):
    strategy = PlacementGroupSchedulingStrategy(group, index)
    task, actor = (what.options(scheduling_strategy=strategy) for what in (f, A))
    words = ("index", "is invalid") if isinstance(index, int) else ()
    show(f"task {index!r}", task.remote, *words)
    show(f"actor {index!r}", actor.remote, *words)
pending = placement_group([{"CPU": 50}])
strategy = PlacementGroupSchedulingStrategy(pending, 1)
show("pending group", lambda: f.options(scheduling_strategy=strategy).remote(), "is invalid")
