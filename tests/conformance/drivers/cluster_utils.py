# cluster_utils.Cluster adds and removes nodes.
# timeout: 120
import ray
from conform import show
from ray.cluster_utils import Cluster

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
node = cluster.add_node(num_cpus=2, resources={"far": 1})
ray.init(address=cluster.address, logging_level="error", log_to_driver=False)
show("wait", lambda: cluster.wait_for_nodes())
print(len(ray.nodes()), ray.cluster_resources()["CPU"])
far = ray.remote(resources={"far": 1})(lambda: ray.get_runtime_context().get_node_id())
print(ray.get(far.remote()) != ray.get_runtime_context().get_node_id())
show("remove", lambda: cluster.remove_node(node))
import time

for _ in range(600):
    if sum(n["Alive"] for n in ray.nodes()) == 1:
        break
    time.sleep(0.1)
print(sum(n["Alive"] for n in ray.nodes()), len(ray.nodes()), ray.cluster_resources()["CPU"])
ray.shutdown()
cluster.shutdown()
