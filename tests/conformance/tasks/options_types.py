# Options of the wrong type are refused.
import ray
from conform import show

cases = {
    "num_cpus": "1",
    "num_gpus": [1],
    "memory": "1GB",
    "resources": ["a"],
    "max_retries": "3",
    "max_calls": 1.5,
    "num_returns": 2.0,
    "name": 3,
    "retry_exceptions": "yes",
    "runtime_env": "env",
    "accelerator_type": 4,
    "scheduling_strategy": 5,
    "object_store_memory": "1",
    "placement_group_bundle_index": "0",
    "label_selector": "a=b",
    "enable_task_events": 1,
}
for name, value in cases.items():
    show(f"{name}={value!r}", lambda: ray.remote(**{name: value})(lambda: 1) and "accepted")
