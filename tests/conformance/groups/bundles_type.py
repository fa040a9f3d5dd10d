# Bundles are a list.
import ray
from conform import show
from ray.util import placement_group

ray.init(num_cpus=1, include_dashboard=False)
for bundles in (None, "x", {"CPU": 1}, ({"CPU": 1},), 5):
    show(repr(bundles), lambda: placement_group(bundles), "bundles must be a list")
