# The children of a generator task and of an async actor are captured.
import ray
from conform import show
from ray.util import get_current_placement_group, placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


@ray.remote(num_cpus=0.1)
def inside(group):
    return get_current_placement_group() == group


@ray.remote(num_cpus=0.1)
def generate(group):
    for _ in range(2):
        yield ray.get(inside.remote(group))


@ray.remote(num_cpus=0.1)
class A:
    async def child(self, group):
        return await inside.remote(group)


ray.init(num_cpus=2, include_dashboard=False)
group = placement_group([{"CPU": 1}])
strategy = PlacementGroupSchedulingStrategy(group, -1, True)
show(
    "generator",
    lambda: [ray.get(ref) for ref in generate.options(scheduling_strategy=strategy).remote(group)],
)
a = A.options(scheduling_strategy=strategy).remote()
show("async actor", lambda: ray.get(a.child.remote(group)))
