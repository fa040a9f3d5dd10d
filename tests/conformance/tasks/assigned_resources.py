# A task can read the resources it holds: CPU, custom and zero amounts.
import ray

ray.init(num_cpus=2, resources={"a": 3}, include_dashboard=False)
get = ray.remote(lambda: sorted(ray.get_runtime_context().get_assigned_resources().items()))
print(ray.get(get.remote()))
print(ray.get(get.options(num_cpus=0).remote()))
print(ray.get(get.options(num_cpus=0.25).remote()))
print(ray.get(get.options(resources={"a": 1}).remote()))
print(ray.get(get.options(num_cpus=0, resources={"a": 1.5}).remote()))
print(ray.get(get.options(num_cpus=2, resources={"a": 0}).remote()))
print(ray.get(get.options(memory=1000).remote()))
