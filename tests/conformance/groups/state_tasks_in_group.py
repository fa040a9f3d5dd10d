# The state API tells the group of tasks and actors.
# needs: extras
# timeout: 120
import os
import ray
from ray.util import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from waiting import until

context = ray.init(num_cpus=2, include_dashboard=True)  # Ray's dashboard serves the state API.
os.environ["RAY_ADDRESS"] = context.address_info["address"]


@ray.remote
def inside():
    return 1


@ray.remote
def outside():
    return 1


@ray.remote(num_cpus=0.5)
class A:
    def m(self):
        return 1


def tasks():
    from ray.util.state import list_tasks

    return {row.name: row for row in list_tasks(detail=True)}


def actors():
    from ray.util.state import list_actors

    return list_actors(detail=True)


group = placement_group([{"CPU": 1}])
strategy = PlacementGroupSchedulingStrategy(group)
ray.get([inside.options(scheduling_strategy=strategy).remote(), outside.remote()])
a = A.options(scheduling_strategy=strategy).remote()
ray.get(a.m.remote())
until(lambda: {"inside", "outside"} <= set(tasks()))
for name in ("inside", "outside"):
    group_id = tasks()[name].placement_group_id
    print(name, group_id == group.id.hex(), group_id if name == "outside" else "")
(actor,) = actors()
print("actor", actor.placement_group_id == group.id.hex())
