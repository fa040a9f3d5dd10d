# The table of a created, a pending, a too large and a removed group.
import ray
from conform import show
from ray.util import placement_group, placement_group_table, remove_placement_group
from waiting import until

ray.init(num_cpus=2, include_dashboard=False)
node = ray.get_runtime_context().get_node_id()


def made(bundles, state, **kwargs):
    group = placement_group(bundles, **kwargs)
    until(lambda: placement_group_table(group)["stats"]["scheduling_state"] == state)
    return group


def tell(label, group):
    entry = placement_group_table(group)
    places = {
        index: "this node" if place == node else place
        for index, place in entry["bundles_to_node_id"].items()
    }
    print(label, list(entry))
    print("  id", entry["placement_group_id"] == group.id.hex(), "name", repr(entry["name"]))
    print("  bundles", entry["bundles"], places)
    print("  state", entry["state"], entry["strategy"], entry["stats"]["scheduling_state"])
    print("  stats", {key: type(value).__name__ for key, value in entry["stats"].items()})


created = made([{"CPU": 1}, {"CPU": 0.5}], "FINISHED", name="mine", strategy="SPREAD")
tell("created", created)
tell("pending", made([{"CPU": 2}], "NO_RESOURCES"))
tell("too large", made([{"CPU": 50}, {"x": 1}], "INFEASIBLE", strategy="STRICT_PACK"))
remove_placement_group(created)
until(lambda: placement_group_table(created)["state"] == "REMOVED")
tell("removed", created)
