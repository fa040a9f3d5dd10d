# Where the strategies put bundles on three nodes.
# timeout: 120
import ray
from ray.cluster_utils import Cluster
from ray.util import placement_group, placement_group_table, remove_placement_group
from waiting import until

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
for _ in range(2):
    cluster.add_node(num_cpus=3)
ray.init(address=cluster.address, logging_level="error", log_to_driver=False)
cluster.wait_for_nodes()
until(lambda: ray.available_resources().get("CPU") == 7)


def counts(strategy, bundles):
    """How many bundles the nodes got, the most first, or why none did."""
    group = placement_group(bundles, strategy=strategy)

    def outcome():
        return placement_group_table(group)["stats"]["scheduling_state"]

    until(lambda: outcome() in ("FINISHED", "INFEASIBLE"))
    entry = placement_group_table(group)
    places = list(entry["bundles_to_node_id"].values())
    remove_placement_group(group)
    until(lambda: ray.available_resources().get("CPU") == 7)
    if entry["state"] != "CREATED":
        return entry["stats"]["scheduling_state"]
    return sorted(map(places.count, set(places)), reverse=True)


for label, bundles in (
    ("two", [{"CPU": 1}] * 2),
    ("three", [{"CPU": 1}] * 3),
    ("four", [{"CPU": 1}] * 4),
    ("seven", [{"CPU": 1}] * 7),
    ("two of 3 CPUs", [{"CPU": 3}] * 2),
):
    for strategy in ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"):
        print(label, strategy, counts(strategy, bundles))
ray.shutdown()
