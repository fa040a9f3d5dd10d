# A node dies: its task is retried elsewhere, an actor there is gone, an object is recomputed.
# timeout: 120
import numpy as np
import ray
from conform import show
from ray.cluster_utils import Cluster

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
ray.init(address=cluster.address, logging_level="error", log_to_driver=False)
node = cluster.add_node(num_cpus=1, resources={"far": 1})
cluster.wait_for_nodes()


@ray.remote(resources={"far": 0.1})
def make():
    return np.ones(500_000)


@ray.remote(num_cpus=0, resources={"far": 0.1})
class A:
    def m(self):
        return 1


ref = make.remote()
ray.wait([ref], fetch_local=False)
a = A.remote()
print(ray.get(a.m.remote()))
cluster.remove_node(node, allow_graceful=False)
show("actor", lambda: [ray.get(a.m.remote(), timeout=120) for _ in range(100_000)] and "alive")
cluster.add_node(num_cpus=1, resources={"far": 1})
show("object", lambda: int(ray.get(ref, timeout=60).sum()))
ray.shutdown()
cluster.shutdown()
