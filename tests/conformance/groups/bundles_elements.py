# Bundles map names to numbers.
import ray
from conform import show
from ray.util import placement_group

ray.init(num_cpus=1, include_dashboard=False)
for bundles in (
    [1],
    ["CPU"],
    [None],
    [[("CPU", 1)]],
    [{1: 1}],
    [{"CPU": "1"}],
    [{"CPU": None}],
    [{"CPU": 1}, {"CPU": "1"}],
):
    show(repr(bundles), lambda: placement_group(bundles), "list of resource dictionaries")
