# The option placement_group is refused beside a strategy; the others do nothing there.
import ray
from conform import show
from ray.util import get_current_placement_group, placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

f = ray.remote(get_current_placement_group)
ray.init(num_cpus=2, include_dashboard=False)
group = placement_group([{"CPU": 1}])
strategy = PlacementGroupSchedulingStrategy(group)
for other in (strategy, "SPREAD", "DEFAULT"):
    show(
        other if isinstance(other, str) else "a group",
        lambda: f.options(placement_group=group, scheduling_strategy=other),
        "deprecated",
    )
show(
    "decorator",
    lambda: ray.remote(placement_group=group, scheduling_strategy=strategy)(lambda: 1),
    "deprecated",
)


def run(**options):
    return ray.get(f.options(**options).remote()) == group


show("None beside", lambda: run(placement_group=None, scheduling_strategy=strategy))
show("default beside", lambda: run(placement_group="default", scheduling_strategy=strategy))
show("strategy None", lambda: run(placement_group=group, scheduling_strategy=None))
show("index", lambda: run(placement_group_bundle_index=0, scheduling_strategy=strategy))
show("index 7", lambda: run(placement_group_bundle_index=7, scheduling_strategy=strategy))
show("capture", lambda: run(placement_group_capture_child_tasks=True, scheduling_strategy=strategy))
