# The resources of a group are not available to others, and are again after its removal.
import ray
from conform import show
from ray.util import placement_group, remove_placement_group
from waiting import until

ray.init(num_cpus=4, num_gpus=2, resources={"x": 2}, include_dashboard=False)


def amounts(function):
    found = function()
    return {name: found.get(name, 0) for name in ("CPU", "GPU", "x")}


group = placement_group([{"CPU": 2, "x": 0.5}, {"GPU": 1}])
ray.get(group.ready())
until(lambda: ray.available_resources().get("CPU") == 2)
show("available", lambda: amounts(ray.available_resources))
show("cluster", lambda: amounts(ray.cluster_resources))
show("nodes", lambda: amounts(lambda: ray.nodes()[0]["Resources"]))
remove_placement_group(group)
until(lambda: ray.available_resources().get("CPU") == 4)
show("removed", lambda: amounts(ray.available_resources))
