# Placement groups that are refused.
import ray
from conform import show
from ray.util.placement_group import placement_group

ray.init(num_cpus=1, include_dashboard=False)
for bundles in (
    [],
    [{}],
    [{"CPU": 0}],
    [{"CPU": -1}],
    [{"CPU": "1"}],
    "x",
    [1],
    [{"CPU": 0.5}],
    {"CPU": 1},
    None,
):
    show(repr(bundles), lambda: placement_group(bundles) and "accepted")
show("strategy", lambda: placement_group([{"CPU": 1}], strategy="NEAR"))
show("lifetime", lambda: placement_group([{"CPU": 1}], lifetime="forever"))
show("name type", lambda: placement_group([{"CPU": 1}], name=5) and "accepted")
