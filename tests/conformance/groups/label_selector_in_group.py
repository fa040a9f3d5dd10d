# A label selector of a task in a bundle must accept the node of the bundle.
import ray
from conform import show
from ray.util import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

ray.init(num_cpus=1, include_dashboard=False, labels={"zone": "a"})
group = placement_group([{"CPU": 1}])
strategy = PlacementGroupSchedulingStrategy(group)
f = ray.remote(lambda: 1)
fits = f.options(scheduling_strategy=strategy, label_selector={"zone": "a"})
show("fits", lambda: ray.get(fits.remote(), timeout=120))
other = f.options(scheduling_strategy=strategy, label_selector={"zone": "b"})
show("no node", lambda: ray.get(other.remote(), timeout=1))
