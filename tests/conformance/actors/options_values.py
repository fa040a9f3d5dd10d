# Bad values of actor options are refused, unusual good ones are accepted.
import ray
from conform import show


class A:
    pass


B = ray.remote(A)
cases = [
    ("max_restarts", -2),
    ("max_restarts", -1),
    ("max_restarts", "1"),
    ("max_restarts", 1.5),
    ("max_task_retries", -2),
    ("max_task_retries", -1),
    ("max_concurrency", 0),
    ("max_concurrency", -1),
    ("max_concurrency", "2"),
    ("max_pending_calls", 0),
    ("max_pending_calls", -2),
    ("max_pending_calls", -1),
    ("lifetime", "forever"),
    ("lifetime", "detached"),
    ("lifetime", "non_detached"),
    ("lifetime", 1),
    ("name", ""),
    ("name", 3),
    ("name", "x"),
    ("namespace", ""),
    ("namespace", 3),
    ("namespace", "n"),
    ("get_if_exists", 1),
    ("get_if_exists", True),
    ("num_cpus", -1),
    ("num_cpus", "1"),
    ("num_gpus", 1.5),
    ("resources", {"CPU": 1}),
    ("concurrency_groups", {"io": 2}),
    ("allow_out_of_order_execution", False),
    ("runtime_env", "x"),
    ("memory", -5),
]
for name, value in cases:
    show(f"{name}={value!r}", lambda: B.options(**{name: value}) and "accepted")
