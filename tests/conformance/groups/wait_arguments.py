# wait() takes a number of seconds, 30 by default.
import ray
from conform import show
from ray.util import placement_group
from waiting import until

ray.init(num_cpus=1, include_dashboard=False)
group = placement_group([{"CPU": 1}])
until(lambda: group.wait(1))
for limit in (1, 1.5, True, 10**9):
    show(repr(limit), lambda: group.wait(limit))
show("by name", lambda: group.wait(timeout_seconds=1))
show("default", lambda: group.wait())
for limit in (None, "1"):
    show(repr(limit), lambda: group.wait(limit))
show("timeout=", lambda: group.wait(timeout=1))
pending = placement_group([{"CPU": 50}])
for limit in (0, -1, 0.9, 1):
    show(f"{limit!r} for a pending group", lambda: pending.wait(limit))
