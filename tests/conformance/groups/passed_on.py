# Groups are passed to tasks and actors, which use them like the driver.
import ray
from conform import show
from ray.util import get_current_placement_group, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from waiting import until


@ray.remote(num_cpus=0)
def use(group):
    f = ray.remote(get_current_placement_group)
    strategy = PlacementGroupSchedulingStrategy(group, 1)
    inside = ray.get(f.options(scheduling_strategy=strategy).remote())
    return group.bundle_specs, group.wait(20), inside == group, ray.get(group.ready()) == group


@ray.remote(num_cpus=0)
class Keeper:
    def keep(self, group):
        self.group = group

    def use(self):
        return ray.get(use.remote(self.group))

    def remove(self):
        remove_placement_group(self.group)


ray.init(num_cpus=2, include_dashboard=False)
group = placement_group([{"CPU": 1}, {"CPU": 1}])
show("task", lambda: ray.get(use.remote(group)))
keeper = Keeper.remote()
ray.get(keeper.keep.remote(group))
show("actor", lambda: ray.get(keeper.use.remote()))
show("in a list", lambda: ray.get(ray.get(ray.put([group]))[0].ready()) == group)
show("removed by the actor", lambda: ray.get(keeper.remove.remote()))


def is_gone():
    """The driver hears of a removal by another process a moment later."""
    try:
        group.wait(1)
    except Exception:
        return True
    return False


until(is_gone)
show("wait", lambda: group.wait(1), "does not exist")
