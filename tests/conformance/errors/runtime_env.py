# A runtime_env that cannot be made fails the task.
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
f = ray.remote(lambda: 1)
show(
    "unknown conda",
    lambda: ray.get(f.options(runtime_env={"conda": "no_such_env_here"}).remote(), timeout=120),
)
show("pip and conda", lambda: f.options(runtime_env={"pip": ["a"], "conda": "b"}))
show("env_vars type", lambda: f.options(runtime_env={"env_vars": {"a": 1}}))
show("env_vars list", lambda: f.options(runtime_env={"env_vars": ["a"]}))
show(
    "local working_dir",
    lambda: f.options(runtime_env={"working_dir": "/tmp"}).remote() and "accepted",
)
