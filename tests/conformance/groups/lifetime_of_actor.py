# A group that an actor made stays when the actor dies, unless the actor is detached.
import ray
from conform import show
from ray.util import get_placement_group, placement_group, placement_group_table
from waiting import until


@ray.remote(num_cpus=0)
class A:
    def make(self, name):
        group = placement_group([{"CPU": 1}], name=name)
        ray.get(group.ready())
        return group


@ray.remote(num_cpus=0)
def make(name):
    group = placement_group([{"CPU": 1}], name=name)
    ray.get(group.ready())
    return group


def state(group):
    return placement_group_table(group)["state"]


ray.init(num_cpus=3, include_dashboard=False, namespace="n")
plain, detached = A.remote(), A.options(name="d", lifetime="detached").remote()
stays, goes = ray.get([plain.make.remote("stays"), detached.make.remote("goes")])
of_task = ray.get(make.remote("of a task"))
show("made", lambda: [state(group) for group in (stays, goes, of_task)])
for a in (plain, detached):
    ray.kill(a)
until(lambda: state(goes) == "REMOVED")
show("killed", lambda: [state(group) for group in (stays, goes, of_task)])
show("found", lambda: [get_placement_group(name).wait(5) for name in ("stays", "of a task")])
