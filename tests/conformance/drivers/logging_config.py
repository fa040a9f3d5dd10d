# LoggingConfig takes certain values and refuses others.
import ray
from conform import show

show("default", lambda: (ray.LoggingConfig().encoding, ray.LoggingConfig().log_level))
show("json", lambda: ray.LoggingConfig(encoding="JSON", log_level="DEBUG").to_dict())
show("bad encoding", lambda: ray.LoggingConfig(encoding="XML"))
show("bad attribute", lambda: ray.LoggingConfig(additional_log_standard_attrs=["colour"]))
show(
    "attribute",
    lambda: ray.LoggingConfig(additional_log_standard_attrs=["name"]).additional_log_standard_attrs,
)
