# A second init is a RuntimeError, unless ignore_reinit_error is given.
import ray
from conform import show

first = ray.init(num_cpus=1, include_dashboard=False)
show("twice", lambda: ray.init(num_cpus=1))
show(
    "ignored",
    lambda: (
        ray.init(num_cpus=1, ignore_reinit_error=True).address_info["node_id"]
        == first.address_info["node_id"]
    ),
)
ray.shutdown()
show("after shutdown", lambda: type(ray.init(num_cpus=1, include_dashboard=False)).__name__)
