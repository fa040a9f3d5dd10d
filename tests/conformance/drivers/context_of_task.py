# The runtime context of a task.
import ray


@ray.remote
def f():
    context = ray.get_runtime_context()
    return (
        len(context.get_task_id()),
        context.get_actor_id(),
        context.get_actor_name(),
        context.get_job_id(),
        len(context.get_worker_id()),
        context.namespace,
        context.get_placement_group_id(),
        context.is_canceled(),
    )


ray.init(num_cpus=1, namespace="mine", include_dashboard=False)
found = ray.get(f.remote())
print(found[3] == ray.get_runtime_context().get_job_id(), *found[:3], *found[4:])
