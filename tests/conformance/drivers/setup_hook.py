# worker_process_setup_hook runs before the first task.
import os
import ray
from conform import show


def hook():
    os.environ["HOOKED"] = "yes"


show(
    "init",
    lambda: (
        ray.init(
            num_cpus=1, include_dashboard=False, runtime_env={"worker_process_setup_hook": hook}
        )
        and "ok"
    ),
)
show("task", lambda: ray.get(ray.remote(lambda: os.environ.get("HOOKED")).remote(), timeout=120))
