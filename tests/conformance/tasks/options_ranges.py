# Option values out of range are refused; the limits themselves are accepted.
import ray
from conform import show

cases = [
    ("num_cpus", -1),
    ("num_cpus", 0),
    ("num_cpus", 0.5),
    ("num_cpus", 1e-6),
    ("num_cpus", 1.5),
    ("num_cpus", None),
    ("num_gpus", 1.5),
    ("num_gpus", 0.5),
    ("num_gpus", -1),
    ("memory", -1),
    ("memory", 0),
    ("memory", 1.5),
    ("max_retries", -1),
    ("max_retries", -2),
    ("max_retries", 0),
    ("max_calls", -1),
    ("max_calls", 0),
    ("num_returns", -1),
    ("num_returns", 0),
    ("num_returns", True),
    ("num_returns", "many"),
    ("num_returns", "dynamic"),
    ("num_returns", "streaming"),
    ("retry_exceptions", []),
    ("retry_exceptions", [ValueError]),
    ("retry_exceptions", [1]),
    ("retry_exceptions", None),
    ("retry_exceptions", (KeyError,)),
    ("name", ""),
    ("scheduling_strategy", "SPREAD"),
    ("scheduling_strategy", "NEAR"),
    ("scheduling_strategy", None),
    ("_generator_backpressure_num_objects", 0),
    ("placement_group_bundle_index", -2),
    ("object_store_memory", 10),
]
for name, value in cases:
    show(f"{name}={value!r}", lambda: ray.remote(**{name: value})(lambda: 1) and "accepted")
