# wait() and ready() of a removed group raise.
import ray
from conform import show
from ray.util import placement_group, remove_placement_group

ray.init(num_cpus=1, include_dashboard=False)
for label, bundle in (("created", {"CPU": 1}), ("pending", {"CPU": 50})):
    group = placement_group([bundle])
    show(label, lambda: group.wait(1))
    ref = group.ready() if label == "pending" else None
    remove_placement_group(group)
    show(f"{label}: wait", lambda: group.wait(5), "does not exist")
    show(f"{label}: ready", lambda: ray.get(group.ready(), timeout=120), "has been removed")
    if ref:
        show("ready of before", lambda: ray.get(ref, timeout=120), "has been removed")
