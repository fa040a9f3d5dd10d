# The options placement_group and placement_group_bundle_index do what the strategy does.
import ray
from conform import show
from ray.util import get_current_placement_group, placement_group


@ray.remote(num_cpus=1)
class A:
    def current(self):
        return get_current_placement_group()


ray.init(num_cpus=3, include_dashboard=False)
group = placement_group([{"CPU": 1}, {"CPU": 1}])
f = ray.remote(get_current_placement_group)
for options in (
    {},
    {"placement_group_bundle_index": 1},
    {"placement_group_bundle_index": -1},
    {"placement_group_capture_child_tasks": True},
    {"placement_group_capture_child_tasks": None},
):
    show(
        f"task {options}",
        lambda: ray.get(f.options(placement_group=group, **options).remote()) == group,
    )
for value in (None, "default"):
    show(f"task {value!r}", lambda: ray.get(f.options(placement_group=value).remote()))
a = A.options(placement_group=group, placement_group_bundle_index=0).remote()
show("actor", lambda: ray.get(a.current.remote()) == group)
for index in (2, -2):
    task = f.options(placement_group=group, placement_group_bundle_index=index)
    show(f"index {index}", task.remote, "is invalid")
for value in (None, "default"):
    task = f.options(placement_group=value, placement_group_bundle_index=0)
    show(f"index of {value!r}", task.remote, "must be -1")
