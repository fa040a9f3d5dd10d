# STRICT_SPREAD waits until there are enough nodes; tasks run where their bundles are.
# timeout: 120
import ray
from conform import show
from ray.cluster_utils import Cluster
from ray.util import placement_group, placement_group_table
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
ray.init(address=cluster.address, logging_level="error", log_to_driver=False)
group = placement_group([{"CPU": 1}] * 2, strategy="STRICT_SPREAD")
show("one node", lambda: group.wait(1))
cluster.add_node(num_cpus=1)
show("two nodes", lambda: group.wait(40))
f = ray.remote(lambda: ray.get_runtime_context().get_node_id())
nodes = ray.get(
    [
        f.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, index)).remote()
        for index in range(2)
    ]
)
show("different", lambda: nodes[0] != nodes[1])
show(
    "as the table says",
    lambda: placement_group_table(group)["bundles_to_node_id"] == dict(enumerate(nodes)),
)
ray.shutdown()
