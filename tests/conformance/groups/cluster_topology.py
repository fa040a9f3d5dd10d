# topology_strategy keeps a group on nodes with one value of a label.
# timeout: 120
import ray
from conform import show
from ray.cluster_utils import Cluster
from ray.util import placement_group, placement_group_table, remove_placement_group
from waiting import until

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "labels": {"zone": "a"}})
for _ in range(2):
    cluster.add_node(num_cpus=2, labels={"zone": "b"})
cluster.add_node(num_cpus=2)
ray.init(address=cluster.address, logging_level="error", log_to_driver=False)
cluster.wait_for_nodes()
until(lambda: ray.available_resources().get("CPU") == 8)
names = {node["NodeID"]: node["Labels"].get("zone", "none") for node in ray.nodes()}


def places(count, cpus, **options):
    group = placement_group([{"CPU": cpus}] * count, **options)

    def outcome():
        return placement_group_table(group)["stats"]["scheduling_state"]

    until(lambda: outcome() in ("FINISHED", "INFEASIBLE"))
    entry = placement_group_table(group)
    remove_placement_group(group)
    until(lambda: ray.available_resources().get("CPU") == 8)
    nodes = list(entry["bundles_to_node_id"].values())
    if entry["state"] != "CREATED":
        return entry["stats"]["scheduling_state"]
    return [names[node] for node in nodes], len(set(nodes)), entry["strategy"]


zone, node = {"zone": "STRICT_PACK"}, "ray.io/node-id"
show("two nodes of a zone", lambda: places(2, 2, topology_strategy=zone))
show("four of one CPU", lambda: places(4, 1, topology_strategy=zone))
show("larger than a zone", lambda: places(3, 2, topology_strategy=zone))
show("unknown label", lambda: places(1, 1, topology_strategy={"rack": "STRICT_PACK"}))
show("apart", lambda: places(2, 1, topology_strategy={**zone, node: "STRICT_SPREAD"}))
show("too many apart", lambda: places(3, 1, topology_strategy={**zone, node: "STRICT_SPREAD"}))
show(
    "a selector",
    lambda: places(
        2, 1, topology_strategy=zone, bundle_label_selector=[{"zone": "a"}, {"zone": "a"}]
    ),
)
for strategy in ("STRICT_PACK", "STRICT_SPREAD"):
    found = places(2, 1, topology_strategy={node: strategy})
    print(strategy, found[1:])
ray.shutdown()
