# The older spellings of the runtime context still work.
import ray
from conform import show


@ray.remote
def f():
    context = ray.get_runtime_context()
    return (
        sorted(context.get()),
        context.job_id.hex() == context.get_job_id(),
        context.task_id.hex() == context.get_task_id(),
    )


ray.init(num_cpus=1, include_dashboard=False)
context = ray.get_runtime_context()
show("get", lambda: sorted(context.get()))
show("job_id", lambda: context.job_id.hex() == context.get_job_id())
show("node_id", lambda: context.node_id.hex() == context.get_node_id())
show("in a task", lambda: ray.get(f.remote()))
