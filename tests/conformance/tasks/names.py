# A task is named by its function or by its option; nested and class-made functions.
import ray


@ray.remote
def f():
    context = ray.get_runtime_context()
    return context.get_task_name(), context.get_task_function_name()


def outer():
    @ray.remote
    def inner():
        context = ray.get_runtime_context()
        return context.get_task_name(), context.get_task_function_name()

    return inner


ray.init(num_cpus=1, include_dashboard=False)
print(ray.get(f.remote()))
print(ray.get(f.options(name="mine").remote()))
print(ray.get(outer().remote()))
