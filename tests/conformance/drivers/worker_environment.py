# The environment variables and modules that a worker finds.
import os
import sys
import ray


@ray.remote
def f():
    return (
        os.environ.get("PYTHONBREAKPOINT"),
        ray.is_initialized(),
        ray._private.worker.global_worker.mode,
        os.getcwd() == cwd,
    )


cwd = os.getcwd()
ray.init(num_cpus=1, include_dashboard=False)
print(ray.get(f.remote()), ray._private.worker.global_worker.mode)
