# A lost bundle moves to another node: its tasks wait, its actor restarts, other bundles go on.
# timeout: 180
import os
import ray
from conform import show
from ray.cluster_utils import Cluster
from ray.util import placement_group, placement_group_table
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from waiting import until


@ray.remote(num_cpus=0.5, max_restarts=-1, max_task_retries=-1)
class A:
    def pid(self):
        return os.getpid()


@ray.remote(num_cpus=0.5)
def where():
    return ray.get_runtime_context().get_node_id()


def entry():
    return placement_group_table(group)


cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
lost = cluster.add_node(num_cpus=1)
ray.init(address=cluster.address, logging_level="error", log_to_driver=False)
cluster.wait_for_nodes()
group = placement_group([{"CPU": 1}] * 2, strategy="STRICT_SPREAD")
show("created", lambda: group.wait(40))
at = entry()["bundles_to_node_id"]
gone = next(index for index, node in at.items() if node == lost.node_id)
moved, stays = (PlacementGroupSchedulingStrategy(group, index) for index in (gone, 1 - gone))
actor = A.options(scheduling_strategy=moved).remote()
other = A.options(scheduling_strategy=stays).remote()
first, second = ray.get([actor.pid.remote(), other.pid.remote()])
cluster.remove_node(lost, allow_graceful=False)
until(lambda: entry()["state"] == "RESCHEDULING", 90)
show("lost bundle", lambda: entry()["bundles_to_node_id"][gone])
show("other bundle", lambda: entry()["bundles_to_node_id"][1 - gone] == at[1 - gone])
show("wait", lambda: group.wait(1))
show(
    "task in the other",
    lambda: ray.get(where.options(scheduling_strategy=stays).remote()) == at[1 - gone],
)
task, call = where.options(scheduling_strategy=moved).remote(), actor.pid.remote()
show("wait for the lost one", lambda: len(ray.wait([task, call], num_returns=2, timeout=1)[0]))
new = cluster.add_node(num_cpus=1)
show("then", lambda: group.wait(60))
show("task there", lambda: ray.get(task, timeout=60) == new.node_id)
show("actor there", lambda: ray.get(call, timeout=60) != first)
show("other actor", lambda: ray.get(other.pid.remote()) == second)
ray.shutdown()
