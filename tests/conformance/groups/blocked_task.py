# A task that waits for its captured child lends its CPU to it within the bundle.
import ray
from conform import show
from ray.util import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


@ray.remote(num_cpus=1)
def depth(n):
    return 1 + ray.get(depth.remote(n - 1)) if n else 0


ray.init(num_cpus=2, include_dashboard=False)
group = placement_group([{"CPU": 1}])
strategy = PlacementGroupSchedulingStrategy(group, 0, True)
show("depth", lambda: ray.get(depth.options(scheduling_strategy=strategy).remote(4), timeout=120))
