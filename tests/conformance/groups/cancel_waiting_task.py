# A task that waits in a pending group can be cancelled, and an actor there can be killed.
import ray
from conform import show
from ray.util import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


@ray.remote(num_cpus=1)
class A:
    def m(self):
        return 1


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
group = placement_group([{"CPU": 50}])
strategy = PlacementGroupSchedulingStrategy(group)
ref = ray.remote(lambda: 1).options(scheduling_strategy=strategy).remote()
show("waits", lambda: ray.get(ref, timeout=1))
ray.cancel(ref)
show("cancelled", lambda: ray.get(ref, timeout=120))
a = A.options(scheduling_strategy=strategy).remote()
call = a.m.remote()
show("actor waits", lambda: ray.get(call, timeout=1))
ray.kill(a)
show("killed", lambda: ray.get(call, timeout=120), "ray.kill")
