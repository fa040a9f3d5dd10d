# Amounts are cut off at 0.0001, memory at a byte; nothing left is an error.
import ray
from conform import show


@ray.remote
def held():
    return sorted(ray.get_runtime_context().get_assigned_resources().items())


@ray.remote
class Actor:
    def held(self):
        return sorted(ray.get_runtime_context().get_assigned_resources().items())


ray.init(num_cpus=2, num_gpus=1, resources={"a": 3}, include_dashboard=False)
cases = [
    {"num_cpus": 1 / 3},
    {"num_cpus": 0.12345},
    {"num_cpus": 1e-5},
    {"num_gpus": 1 / 3},
    {"num_gpus": 2 / 3},
    {"num_gpus": 1e-5},
    {"memory": 1e9 / 3},
    {"memory": 0.5},
    {"resources": {"a": 1 / 3}},
    {"resources": {"a": 5 / 3}},
    {"resources": {"a": 1e-5}},
]
for options in cases:
    show(f"task {options}", lambda: ray.get(held.options(**options).remote()))
    show(f"actor {options}", lambda: ray.get(Actor.options(**options).remote().held.remote()))
show(
    "three thirds of a GPU",
    lambda: ray.get([held.options(num_cpus=0, num_gpus=1 / 3).remote() for _ in range(3)]),
)
