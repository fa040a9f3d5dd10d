# Calls before init start a cluster or raise.
import ray
from conform import show

show("is_initialized", ray.is_initialized)
show("nodes", ray.nodes)
show("cluster_resources", ray.cluster_resources)
show("available_resources", ray.available_resources)
show("timeline", ray.timeline)
show("job id", lambda: ray.get_runtime_context().get_job_id())
show("node id", lambda: ray.get_runtime_context().get_node_id())
show("shutdown", ray.shutdown)
print(ray.is_initialized())
