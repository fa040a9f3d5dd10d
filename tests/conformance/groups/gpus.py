# A bundle has GPUs of its own, which its tasks see.
import os
import ray
from conform import show
from ray.util import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


def gpus():
    return ray.get_gpu_ids(), os.environ.get("CUDA_VISIBLE_DEVICES")


f = ray.remote(num_cpus=0)(gpus)
ray.init(num_cpus=2, num_gpus=4, include_dashboard=False)
group = placement_group([{"GPU": 2}, {"GPU": 1}], strategy="PACK")
ray.get(group.ready())


def inside(index, amount):
    strategy = PlacementGroupSchedulingStrategy(group, index)
    return ray.get(f.options(scheduling_strategy=strategy, num_gpus=amount).remote())


both, one = inside(0, 2), inside(1, 1)
show("counts", lambda: (len(both[0]), len(one[0]), sorted(both[0] + one[0])))
show("environment", lambda: both[1] == ",".join(map(str, both[0])) and one[1] == str(one[0][0]))
show("half", lambda: set(inside(0, 0.5)[0]) <= set(both[0]))
show("whole of bundle 0", lambda: set(inside(0, 1)[0]) <= set(both[0]))
show("again", lambda: inside(1, 1) == one)
show("no GPU", lambda: inside(0, 0))
show("outside", lambda: set(ray.get(f.options(num_gpus=1).remote())[0]) & {*both[0], *one[0]})
