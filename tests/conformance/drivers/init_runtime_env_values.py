# init refuses bad values of runtime_env.
# timeout: 150
import ray
from conform import show

for value in (
    "x",
    ["a"],
    {"env_vars": ["a"]},
    {"env_vars": {"a": 1}},
    {"pip": 5},
    {"pip": ["a"], "conda": "b"},
    {"working_dir": 5},
    {"working_dir": "/no/such/dir"},
):
    show(
        repr(value),
        lambda: ray.init(num_cpus=1, include_dashboard=False, runtime_env=value) and "accepted",
    )
    ray.shutdown()
