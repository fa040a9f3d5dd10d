# Actors made by a task that captures are in its group; so are the children of such actors.
import ray
from ray.util import get_current_placement_group, placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


def inside(group):
    return get_current_placement_group() == group


@ray.remote(num_cpus=0)
class A:
    def here(self, group):
        return inside(group)

    def child(self, group):
        return ray.get(ray.remote(num_cpus=0.1)(inside).remote(group))

    def actor(self, group):
        a = A.remote()
        return ray.get(a.here.remote(group))


@ray.remote(num_cpus=0.1)
def parent(group, outside):
    found = {}
    for label, options in {
        "plain": {},
        "DEFAULT": {"scheduling_strategy": "DEFAULT"},
        "None": {"placement_group": None},
        "detached": {"lifetime": "detached", "name": "d"},
    }.items():
        a = A.options(**options).remote()
        found[label] = ray.get([a.here.remote(group), a.child.remote(group), a.actor.remote(group)])
        ray.kill(a)
    found["an actor outside"] = ray.get([outside.here.remote(group), outside.child.remote(group)])
    return found


ray.init(num_cpus=2, include_dashboard=False, namespace="n")
group = placement_group([{"CPU": 1}])
outside = A.remote()
strategy = PlacementGroupSchedulingStrategy(group, 0, True)
for label, found in ray.get(
    parent.options(scheduling_strategy=strategy).remote(group, outside)
).items():
    print(label, found)
for captures in (True, False):
    a = A.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, 0, captures)).remote()
    print(captures, ray.get([a.here.remote(group), a.child.remote(group), a.actor.remote(group)]))
