# A task runs in a bundle of a placement group; requests that do not fit are refused.
import ray
from conform import show
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

ray.init(num_cpus=2, include_dashboard=False)
group = placement_group([{"CPU": 1}, {"CPU": 1}])
show("wait", lambda: group.wait(20))
show("ready", lambda: ray.get(group.ready()).id == group.id)
f = ray.remote(lambda: ray.util.get_current_placement_group() is not None)
show(
    "inside",
    lambda: ray.get(
        f.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group)).remote()
    ),
)
show(
    "bundle 1",
    lambda: ray.get(
        f.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, 1)).remote()
    ),
)
show(
    "bundle 2",
    lambda: f.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, 2)).remote(),
)
show(
    "too big",
    lambda: f.options(
        num_cpus=2, scheduling_strategy=PlacementGroupSchedulingStrategy(group)
    ).remote(),
)
show("driver", lambda: ray.util.get_current_placement_group())
show("counts", lambda: (group.bundle_count, group.bundle_specs, group.is_empty))
show("remove", lambda: remove_placement_group(group))
