# An actor that crashes restarts in its bundle.
import os
import ray
from conform import show
from ray.util import get_current_placement_group, placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


@ray.remote(num_cpus=1, max_restarts=1, max_task_retries=2)
class A:
    def here(self):
        return os.getpid(), get_current_placement_group()

    def crash(self):
        os._exit(1)


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
group = placement_group([{"CPU": 1}])
strategy = PlacementGroupSchedulingStrategy(group, 0)
a = A.options(scheduling_strategy=strategy).remote()
first, where = ray.get(a.here.remote())
show("before", lambda: where == group)
a.crash.options(max_task_retries=0).remote()
second, where = ray.get(a.here.remote(), timeout=120)
show("after", lambda: (where == group, first != second))
