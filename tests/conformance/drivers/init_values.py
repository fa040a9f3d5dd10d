# init refuses bad values of its arguments.
import ray
from conform import show

cases = [
    ("num_cpus", -1),
    ("num_cpus", "2"),
    ("num_cpus", 1.5),
    ("num_gpus", -1),
    ("resources", {"CPU": 1}),
    ("resources", ["a"]),
    ("resources", {"a": -1}),
    ("resources", {"a": "1"}),
    ("resources", {"a": 2.5}),
    ("resources", {"a": 0.5}),
    ("labels", ["a"]),
    ("labels", {"ray.io/x": "y"}),
    ("object_store_memory", 1),
    ("_system_config", "x"),
    ("namespace", 3),
    ("namespace", ""),
    ("job_config", 5),
    ("logging_config", 5),
    ("address", 5),
    ("_memory", -1),
]
for name, value in cases:
    show(f"{name}={value!r}", lambda: ray.init(**{name: value}) and "accepted")
    ray.shutdown()
