# A captured child that fits into no bundle is refused in the parent.
import ray
from conform import facts
from ray.util import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


@ray.remote
def parent(options):
    try:
        ray.remote(lambda: 1).options(**options).remote()
    except ValueError as error:
        return facts(error), "cannot fit into any bundles" in str(error)


ray.init(num_cpus=4, include_dashboard=False)
group = placement_group([{"CPU": 1}])
strategy = PlacementGroupSchedulingStrategy(group, 0, True)
for options in ({"num_cpus": 2}, {"resources": {"x": 1}}, {"num_gpus": 1}):
    print(ray.get(parent.options(scheduling_strategy=strategy).remote(options)))
