# ready() of a group that waits for room becomes ready when another one is removed.
import ray
from conform import show
from ray.util import placement_group, remove_placement_group

ray.init(num_cpus=1, include_dashboard=False)
first = placement_group([{"CPU": 1}])
ray.get(first.ready())
second = placement_group([{"CPU": 1}])
ref = second.ready()
show("waits", lambda: ray.get(ref, timeout=1))
show("waits too", lambda: second.wait(1))
remove_placement_group(first)
show("then", lambda: ray.get(ref, timeout=120) == second)
show("wait", lambda: second.wait(30))
