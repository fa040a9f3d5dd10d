# Negative, infinite and too fine amounts in a bundle.
import ray
from conform import show
from ray.util import placement_group

ray.init(num_cpus=1, include_dashboard=False)
for amount in (-1, float("inf"), float("nan"), 0.00001, 0.00015):
    show(repr(amount), lambda: placement_group([{"CPU": amount}]) and "accepted")
show("1.5 GPUs", lambda: placement_group([{"GPU": 1.5}]) and "accepted")
