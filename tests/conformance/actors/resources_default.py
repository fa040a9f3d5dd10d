# Actors hold nothing by default, and one CPU for life once they ask for anything else.
import ray


@ray.remote
class A:
    def held(self):
        return sorted(ray.get_runtime_context().get_assigned_resources().items())


ray.init(num_cpus=4, resources={"r": 2}, include_dashboard=False)
for options in (
    {},
    {"num_cpus": 1},
    {"num_cpus": 0},
    {"num_cpus": 0.5},
    {"resources": {"r": 1}},
    {"num_cpus": 0, "resources": {"r": 0.5}},
    {"memory": 1000},
):
    a = A.options(**options).remote()
    print(options, ray.get(a.held.remote()))
