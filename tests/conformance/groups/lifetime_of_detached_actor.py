# The group of a detached actor outlives the driver that made the actor.
import subprocess
import sys
import ray
from conform import show
from ray.util import placement_group_table
from waiting import until

CHILD = """
import sys
import ray
from ray.util import placement_group
ray.init(address=sys.argv[1], namespace="n", log_to_driver=False, logging_level="error")

@ray.remote(num_cpus=0)
class A:
    def make(self, name):
        group = placement_group([{"CPU": 1}], name=name)
        ray.get(group.ready())

keeper, plain = A.options(name="keeper", lifetime="detached").remote(), A.remote()
ray.get([keeper.make.remote("of the keeper"), plain.make.remote("of an actor")])
"""


def states():
    return sorted((row["name"], row["state"]) for row in placement_group_table().values())


context = ray.init(num_cpus=2, namespace="n", include_dashboard=False)
subprocess.run([sys.executable, "-c", CHILD, context.address_info["address"]], check=True)
until(lambda: any(state == "REMOVED" for _, state in states()))
show("without the driver", states)
ray.kill(ray.get_actor("keeper"))
until(lambda: all(state == "REMOVED" for _, state in states()))
show("without the actor", states)
