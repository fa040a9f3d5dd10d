# .options() returns a new object and always starts from the decorator's options.
import ray


@ray.remote(num_cpus=0.5)
def f():
    return ray.get_runtime_context().get_assigned_resources().get("CPU")


ray.init(num_cpus=2, include_dashboard=False)
changed = f.options(num_cpus=2)
print(ray.get([f.remote(), changed.remote(), f.options(name="x").remote(), f.remote()]))
