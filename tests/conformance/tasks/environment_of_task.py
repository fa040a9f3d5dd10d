# env_vars in a task's runtime_env are set, and do not leak into other tasks.
import os
import ray

ray.init(num_cpus=1, include_dashboard=False)
read = ray.remote(lambda: os.environ.get("COLOUR"))
print(ray.get(read.options(runtime_env={"env_vars": {"COLOUR": "red"}}).remote()))
print(ray.get(read.remote()))
