# A task waits while the bundle it asks for lacks a resource, even if another bundle has it.
import ray
from conform import show
from ray.util import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

ray.init(num_cpus=4, resources={"x": 2}, include_dashboard=False)
group = placement_group([{"CPU": 1}, {"CPU": 1, "x": 1}])
f = ray.remote(lambda: 1)
for index in (1, -1, 0):
    strategy = PlacementGroupSchedulingStrategy(group, index)
    task = f.options(scheduling_strategy=strategy, resources={"x": 1})
    show(f"bundle {index}", lambda: ray.get(task.remote(), timeout=120 if index else 1))
