# The kinds of values of the runtime context, on a driver and in a task.
import json

import ray
from conform import show

NAMES = (
    "get_accelerator_ids",
    "get_placement_group_id",
    "get_runtime_env_string",
    "get_session_name",
    "get_temp_dir",
    "get_node_labels",
)


def members():
    context = ray.get_runtime_context()
    values = {name: getattr(context, name)() for name in NAMES}
    return {
        **{name: type(value).__name__ for name, value in values.items()},
        "accelerators": sorted(values["get_accelerator_ids"]),
        "env": json.loads(values["get_runtime_env_string"]),
        "session": values["get_session_name"][:8],
        "capture": context.should_capture_child_tasks_in_placement_group,
        "label": "ray.io/node-id" in values["get_node_labels"],
    }


ray.init(num_cpus=1)
show("driver", members)
show("task", lambda: ray.get(ray.remote(members).remote()))
