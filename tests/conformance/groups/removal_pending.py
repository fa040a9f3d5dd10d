# A group is removed while it waits for room, with a task and an actor that wait in it.
import ray
from conform import show
from ray.util import placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from waiting import until


@ray.remote(num_cpus=1)
class A:
    def m(self):
        return 1


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
group = placement_group([{"CPU": 50}])
strategy = PlacementGroupSchedulingStrategy(group)
task = ray.remote(lambda: 1).options(scheduling_strategy=strategy).remote()
a = A.options(scheduling_strategy=strategy).remote()
call = a.m.remote()
show("waits", lambda: group.wait(1))
remove_placement_group(group)
until(lambda: placement_group_table(group)["state"] == "REMOVED")
show("task", lambda: ray.get(task, timeout=3))
show("actor", lambda: ray.get(call, timeout=3))
