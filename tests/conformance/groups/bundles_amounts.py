# Amounts may be fractions and unknown names; the specs are floats.
import ray
from conform import show
from ray.util import placement_group

ray.init(num_cpus=4, num_gpus=1, resources={"x": 1}, include_dashboard=False)
for bundle in (
    {"CPU": 0.5},
    {"CPU": True},
    {"CPU": 0.0001},
    {"x": 0.5},
    {"GPU": 0.5},
    {"memory": 1000},
    {"object_store_memory": 1e8},
    {"CPU": 0.25, "x": 0.25, "memory": 1e6},
):
    group = placement_group([bundle])
    show(repr(bundle), lambda: (group.bundle_specs, group.wait(30)))
show("unknown name", lambda: placement_group([{"cpu": 1}]).wait(0))
