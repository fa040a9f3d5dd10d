# get_current_placement_group and the runtime context of drivers, tasks and actors.
import ray
from conform import show
from ray.util import get_current_placement_group, placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


def current():
    group = get_current_placement_group()
    context = ray.get_runtime_context()
    return (
        group and group.bundle_specs,
        group and group.id.hex() == context.get_placement_group_id(),
        type(context.get_placement_group_id()).__name__,
        context.should_capture_child_tasks_in_placement_group,
    )


@ray.remote(num_cpus=0.5)
class A:
    def __init__(self):
        self.first = current()

    def both(self):
        return self.first, current()


@ray.remote(num_cpus=0.5)
class Async:
    async def both(self):
        return current()


f = ray.remote(num_cpus=0.5)(current)
ray.init(num_cpus=4, include_dashboard=False)
show("driver", current)
group = placement_group([{"CPU": 1}, {"CPU": 2}])
for label, strategy in (
    ("none", None),
    ("group", PlacementGroupSchedulingStrategy(group)),
    ("bundle", PlacementGroupSchedulingStrategy(group, 1)),
    ("captures", PlacementGroupSchedulingStrategy(group, 1, True)),
):
    show(f"{label}: task", lambda: ray.get(f.options(scheduling_strategy=strategy).remote()))
    for kind in (A, Async):
        a = kind.options(scheduling_strategy=strategy).remote()
        show(f"{label}: actor", lambda: ray.get(a.both.remote()))
        del a
show(
    "captures alone", lambda: ray.get(f.options(placement_group_capture_child_tasks=True).remote())
)
