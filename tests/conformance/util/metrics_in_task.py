# Metrics made in the driver can be used in tasks and actors.
import ray
from conform import show
from ray.util.metrics import Counter

ray.init(num_cpus=1, include_dashboard=False)
counter = Counter("made_in_driver", tag_keys=("k",))
counter.set_default_tags({"k": "v"})


@ray.remote
def f(c):
    c.inc()
    return c.info["default_tags"], Counter("made_in_task").info["name"]


show("pickled", lambda: ray.get(f.remote(counter)))
