# Private helpers that programs use are there.
import time
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
ray.get(ray.remote(lambda: 1).remote())


def free():
    return [
        sorted(k for k in v if k == "CPU")
        for v in ray._private.state.available_resources_per_node().values()
    ]


for _ in range(100):  # The task's CPU is returned a moment later.
    if free() == [["CPU"]]:
        break
    time.sleep(0.1)
show("available per node", free)
show(
    "total per node",
    lambda: [v["CPU"] for v in ray._private.state.total_resources_per_node().values()],
)
show("worker", lambda: ray._private.worker.global_worker.connected)
show("mode", lambda: ray._private.worker.global_worker.mode)
