# A group of a hundred bundles, and many small groups one after the other.
import ray
from conform import show
from ray.util import placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

ray.init(num_cpus=2, include_dashboard=False)
group = placement_group([{"CPU": 0.01}] * 100)
show("created", lambda: (group.wait(40), group.bundle_count))
f = ray.remote(num_cpus=0.01)(lambda index: index)
refs = [
    f.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, index)).remote(index)
    for index in range(0, 100, 10)
]
show("tasks", lambda: ray.get(refs, timeout=120))
remove_placement_group(group)
groups = [placement_group([{"CPU": 0.01}]) for _ in range(50)]
show("fifty", lambda: all(ray.get([group.ready() for group in groups], timeout=120)))
for group in groups:
    remove_placement_group(group)
states = [row["state"] for row in placement_group_table().values()]
show("states", lambda: (len(states), set(states)))
