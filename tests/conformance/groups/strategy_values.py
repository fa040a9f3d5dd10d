# Unknown strategies are refused.
import ray
from conform import show
from ray.util import placement_group

ray.init(num_cpus=1, include_dashboard=False)
for strategy in ("NEAR", "pack", "", 1):
    show(
        repr(strategy),
        lambda: placement_group([{"CPU": 1}], strategy=strategy),
        "Invalid placement group strategy",
        "STRICT_SPREAD",
    )
show("None", lambda: placement_group([{"CPU": 1}], strategy=None).wait(30))
show("unknown argument", lambda: placement_group([{"CPU": 1}], near=1))
