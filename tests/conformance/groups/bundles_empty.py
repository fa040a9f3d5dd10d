# A group needs bundles, and each bundle a resource that is not 0.
import ray
from conform import show
from ray.util import placement_group

ray.init(num_cpus=1, include_dashboard=False)
show("no bundle", lambda: placement_group([]), "non-empty list")
for bundles in (
    [{}],
    [{"CPU": 1}, {}],
    [{"CPU": 0}],
    [{"CPU": 1}, {"CPU": 0}],
    [{"CPU": 0, "x": 0}],
    [{"CPU": False}],
):
    show(repr(bundles), lambda: placement_group(bundles), "only 0 values")
show("one of two amounts is 0", lambda: placement_group([{"CPU": 0, "x": 1}]).bundle_specs)
