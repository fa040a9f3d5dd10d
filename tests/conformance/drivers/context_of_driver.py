# The runtime context of a driver.
import ray
from conform import show

ray.init(num_cpus=1, namespace="mine", include_dashboard=False)
context = ray.get_runtime_context()
for name in ("get_job_id", "get_node_id", "get_worker_id"):
    show(name, lambda: len(getattr(context, name)()))
for name in (
    "get_actor_id",
    "get_actor_name",
    "get_task_id",
    "get_task_name",
    "get_task_function_name",
    "get_placement_group_id",
    "get_runtime_env_string",
):
    show(name, lambda: getattr(context, name)())
show("get_assigned_resources", context.get_assigned_resources)
show("namespace", lambda: context.namespace)
show("was_current_actor_reconstructed", lambda: context.was_current_actor_reconstructed)
show("runtime_env", lambda: dict(context.runtime_env))
show("gcs_address", lambda: context.gcs_address.count(":"))
show("accelerators", lambda: sorted(context.get_accelerator_ids()))
show("labels", lambda: sorted(context.get_node_labels())[:1])
show("is_canceled", context.is_canceled)
show("singleton", lambda: ray.get_runtime_context() is context)
