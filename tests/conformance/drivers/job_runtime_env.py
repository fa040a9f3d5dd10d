# The job's runtime_env reaches every task and actor, and tasks may add to it.
import os
import ray

ray.init(num_cpus=2, include_dashboard=False, runtime_env={"env_vars": {"A": "job", "B": "job"}})
read = ray.remote(lambda: (os.environ.get("A"), os.environ.get("B"), os.environ.get("C")))
print(ray.get(read.remote()))
print(ray.get(read.options(runtime_env={"env_vars": {"B": "task", "C": "task"}}).remote()))
print(ray.get_runtime_context().runtime_env.get("env_vars"))
