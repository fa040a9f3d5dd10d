# The lifetime of a group is None or "detached".
import ray
from conform import show
from ray.util import placement_group

ray.init(num_cpus=1, include_dashboard=False)
for lifetime in ("forever", "non_detached", "", 1, True):
    show(
        repr(lifetime),
        lambda: placement_group([{"CPU": 1}], lifetime=lifetime),
        "either `None` or 'detached'",
    )
show("detached", lambda: placement_group([{"CPU": 0.5}], lifetime="detached").wait(30))
show("None", lambda: placement_group([{"CPU": 0.5}], lifetime=None).wait(30))
