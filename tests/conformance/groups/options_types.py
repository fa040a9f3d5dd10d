# Options of groups of the wrong type are refused where they are given, other strings at the call.
import ray
from conform import show
from ray.util import placement_group


@ray.remote
class A:
    pass


f = ray.remote(lambda: 1)
ray.init(num_cpus=1, include_dashboard=False)
group = placement_group([{"CPU": 1}])
for what, kind in ((f, "task"), (A, "actor")):
    for value in (5, group.id, [group]):
        show(
            f"{kind} in {type(value).__name__}",
            lambda: what.options(placement_group=value),
            "placement_group",
        )
    show(f"{kind} in a string", lambda: what.options(placement_group="x") and "accepted")
    show(f"{kind} in a string, call", lambda: what.options(placement_group="x").remote())
    for value in (None, "0", 1.5):
        show(
            f"{kind} at {value!r}",
            lambda: what.options(placement_group=group, placement_group_bundle_index=value),
            "placement_group_bundle_index",
        )
    show(
        f"{kind} capture",
        lambda: what.options(placement_group_capture_child_tasks="x"),
        "placement_group_capture_child_tasks",
    )
