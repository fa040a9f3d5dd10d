# A bundle goes to a node whose labels its selector accepts.
import ray
from conform import show
from ray.util import placement_group, placement_group_table, remove_placement_group
from waiting import until

ray.init(num_cpus=1, include_dashboard=False, labels={"zone": "a"})


def outcome(selector):
    group = placement_group([{"CPU": 1}], bundle_label_selector=[selector])
    until(lambda: placement_group_table(group)["stats"]["scheduling_state"] in ENDS)
    state = placement_group_table(group)["state"]
    remove_placement_group(group)
    return state


ENDS = ("FINISHED", "INFEASIBLE")
for selector in (
    {"zone": "a"},
    {"zone": "b"},
    {"zone": "!b"},
    {"zone": "!a"},
    {"zone": "in(b,a)"},
    {"zone": "!in(b,a)"},
    {"other": "!a"},
    {"zone": "a", "other": "b"},
):
    show(repr(selector), lambda: outcome(selector))
node = ray.get_runtime_context().get_node_id()
show("the id of the node", lambda: outcome({"ray.io/node-id": node}))
