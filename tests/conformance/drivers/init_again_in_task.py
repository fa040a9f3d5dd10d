# init(ignore_reinit_error=True) in a task gives the context of the running session.
import ray
from conform import show


@ray.remote
def again():
    context = ray.init(ignore_reinit_error=True)
    info = context.address_info
    return {key: info[key] for key in ("node_id", "gcs_address", "session_dir", "node_ip_address")}


context = ray.init(num_cpus=1, include_dashboard=False)
show(
    "the driver's",
    lambda: (
        ray.get(again.remote())
        == {
            key: context.address_info[key]
            for key in ("node_id", "gcs_address", "session_dir", "node_ip_address")
        }
    ),
)
show("html", lambda: "Python version" in context._repr_html_())
