# A group for which there is no room does not hold up a smaller one.
import ray
from conform import show
from ray.util import placement_group

ray.init(num_cpus=2, include_dashboard=False)
first = placement_group([{"CPU": 1}])
show("first", lambda: first.wait(30))
large = placement_group([{"CPU": 2}])
small = placement_group([{"CPU": 1}])
show("small", lambda: small.wait(30))
show("large", lambda: large.wait(0))
