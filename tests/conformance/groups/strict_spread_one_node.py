# STRICT_SPREAD needs as many nodes as bundles; one bundle finds room on one node.
import ray
from conform import show
from ray.util import placement_group, placement_group_table
from waiting import until

ray.init(num_cpus=2, include_dashboard=False)
one = placement_group([{"CPU": 1}], strategy="STRICT_SPREAD")
show("one bundle", lambda: one.wait(30))
two = placement_group([{"CPU": 0.5}, {"CPU": 0.5}], strategy="STRICT_SPREAD")
show("two bundles", lambda: two.wait(1))
until(lambda: placement_group_table(two)["stats"]["scheduling_state"] == "INFEASIBLE")
show("table", lambda: placement_group_table(two)["state"])
