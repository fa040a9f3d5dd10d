# get_assigned_resources() in a bundle names plain resources.
import ray
from conform import show
from ray.util import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


def assigned():
    return sorted(ray.get_runtime_context().get_assigned_resources().items())


@ray.remote
class A:
    def m(self):
        return assigned()


f = ray.remote(assigned)
ray.init(num_cpus=4, num_gpus=1, resources={"x": 1}, include_dashboard=False)
group = placement_group([{"CPU": 2, "GPU": 1, "x": 1}, {"CPU": 1}])
strategy = PlacementGroupSchedulingStrategy(group)
for options in (
    {},
    {"num_cpus": 0},
    {"num_cpus": 0.5},
    {"num_cpus": 1, "num_gpus": 1},
    {"num_cpus": 1, "resources": {"x": 0.5}},
):
    show(
        f"task {options}",
        lambda: ray.get(f.options(scheduling_strategy=strategy, **options).remote()),
    )
    a = A.options(scheduling_strategy=strategy, **options).remote()
    show(f"actor {options}", lambda: ray.get(a.m.remote()))
    del a
