# name= in the decorator is overridden by .options().
import ray


@ray.remote(name="first")
def f():
    return ray.get_runtime_context().get_task_name()


ray.init(num_cpus=1, include_dashboard=False)
print(
    ray.get(f.remote()),
    ray.get(f.options(name="second").remote()),
    ray.get(f.options(num_cpus=0).remote()),
)
