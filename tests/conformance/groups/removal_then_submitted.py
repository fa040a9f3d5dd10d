# A task sent to a removed group waits for ever.
import ray
from conform import show
from ray.util import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from waiting import until

ray.init(num_cpus=2, include_dashboard=False)
f = ray.remote(lambda: 1)
group = placement_group([{"CPU": 1}])
strategy = PlacementGroupSchedulingStrategy(group)
show("before", lambda: ray.get(f.options(scheduling_strategy=strategy).remote()))
remove_placement_group(group)
until(lambda: ray.available_resources().get("CPU") == 2)
show("after", lambda: ray.get(f.options(scheduling_strategy=strategy).remote(), timeout=2))
bundle = PlacementGroupSchedulingStrategy(group, 0)
show("bundle", lambda: ray.get(f.options(scheduling_strategy=bundle).remote(), timeout=1))
show(
    "index",
    lambda: f.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, 1)).remote(),
)
show("others run", lambda: ray.get(f.remote(), timeout=120))
