# Private helpers that programs use.
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
ray.get(ray.remote(lambda: 1).remote())
show("available per node", lambda: [sorted(k for k in v if k == "CPU") for v in ray._private.state.available_resources_per_node().values()])
show("total per node", lambda: [v["CPU"] for v in ray._private.state.total_resources_per_node().values()])
show("worker", lambda: ray._private.worker.global_worker.connected)
show("mode", lambda: ray._private.worker.global_worker.mode)
