# A request that fits into no bundle is refused when the call is made.
import ray
from conform import show
from ray.util import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


@ray.remote
class A:
    pass


@ray.remote
def f():
    return 1


ray.init(num_cpus=4, resources={"x": 2}, include_dashboard=False)
group = placement_group([{"CPU": 1}, {"CPU": 1, "x": 1}])
strategy = PlacementGroupSchedulingStrategy(group)
for options in (
    {"num_cpus": 2},
    {"num_cpus": 1.5},
    {"resources": {"x": 2}},
    {"resources": {"y": 1}},
    {"num_gpus": 1},
    {"num_gpus": 0.5},
    {"memory": 1000},
):
    words = ("Cannot schedule", "cannot fit into any bundles")
    task, actor = (what.options(scheduling_strategy=strategy, **options) for what in (f, A))
    show(f"task {options}", task.remote, *words)
    show(f"actor {options}", actor.remote, *words)
fits = {"num_cpus": 0.5, "resources": {"x": 0.5}}
show("fits one", lambda: ray.get(f.options(scheduling_strategy=strategy, **fits).remote()))
show("no CPU", lambda: ray.get(f.options(scheduling_strategy=strategy, num_cpus=0).remote()))
