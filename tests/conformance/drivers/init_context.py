# init returns a context with the documented members.
import ray
from conform import show

context = ray.init(num_cpus=1, include_dashboard=False)
show("type", lambda: type(context).__name__)
show(
    "fields",
    lambda: [
        hasattr(context, name)
        for name in ("dashboard_url", "python_version", "ray_version", "ray_commit", "address_info")
    ],
)
show(
    "versions", lambda: (context.python_version.count("."), context.ray_version == ray.__version__)
)
show("mapping", lambda: context["node_id"] == context.address_info["node_id"])
show("keys", lambda: sorted(context.address_info))
show("gcs", lambda: context.address_info["gcs_address"] == context.address_info["address"])
with context:
    print(ray.is_initialized())
print(ray.is_initialized())
