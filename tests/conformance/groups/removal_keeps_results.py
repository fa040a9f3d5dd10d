# The results of tasks outlive their group, and so do actors outside it.
import ray
from conform import show
from ray.util import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from waiting import until


@ray.remote(num_cpus=0)
class A:
    def m(self):
        return "alive"


@ray.remote
def make(size):
    return bytes(size)


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
outside = A.remote()
group = placement_group([{"CPU": 1}])
task = make.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group))
refs = [task.remote(10), task.remote(4_000_000)]
ray.wait(refs, num_returns=2)
remove_placement_group(group)
until(lambda: ray.available_resources().get("CPU") == 2)
show("results", lambda: [len(ray.get(ref)) for ref in refs])
show("outside", lambda: ray.get(outside.m.remote()))
