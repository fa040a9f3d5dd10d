# Bundles go to nodes whose labels their selectors accept; a soft target is taken if it has room.
# timeout: 120
import ray
from conform import show
from ray.cluster_utils import Cluster
from ray.util import placement_group, placement_group_table, remove_placement_group
from waiting import until

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
for zone in ("a", "b"):
    cluster.add_node(num_cpus=2, labels={"zone": zone})
ray.init(address=cluster.address, logging_level="error", log_to_driver=False)
cluster.wait_for_nodes()
until(lambda: ray.available_resources().get("CPU") == 5)
names = {node["NodeID"]: node["Labels"].get("zone", "head") for node in ray.nodes()}
ids = {name: key for key, name in names.items()}


def places(bundles, **options):
    group = placement_group(bundles, **options)

    def outcome():
        return placement_group_table(group)["stats"]["scheduling_state"]

    until(lambda: outcome() in ("FINISHED", "INFEASIBLE"))
    entry = placement_group_table(group)
    remove_placement_group(group)
    until(lambda: ray.available_resources().get("CPU") == 5)
    found = [names.get(node, "none") for node in entry["bundles_to_node_id"].values()]
    return found if entry["state"] == "CREATED" else entry["stats"]["scheduling_state"]


one = [{"CPU": 1}]
for selectors in (
    [{"zone": "a"}],
    [{"zone": "b"}],
    [{"zone": "c"}],
    [{"zone": "!in(a,b)"}],
    [{"zone": "a"}, {"zone": "b"}],
    [{"zone": "b"}, {"zone": "!in(a,b)"}, {"zone": "in(a,c)"}],
):
    show(
        f"selectors {selectors}",
        lambda: places(one * len(selectors), bundle_label_selector=selectors),
    )
show(
    "against STRICT_PACK",
    lambda: places(
        one * 2, strategy="STRICT_PACK", bundle_label_selector=[{"zone": "a"}, {"zone": "b"}]
    ),
)
for target in ("a", "b", "head"):
    show(
        f"target {target}",
        lambda: places(one, strategy="STRICT_PACK", _soft_target_node_id=ids[target]),
    )
two = places([{"CPU": 2}], strategy="STRICT_PACK", _soft_target_node_id=ids["head"])
print("target too small", two[0] in "ab")
ray.shutdown()
