# env_vars in an actor's runtime_env are inherited by the tasks it starts.
import os
import ray


@ray.remote
def read():
    return os.environ.get("COLOUR")


@ray.remote
class A:
    def both(self):
        return os.environ.get("COLOUR"), ray.get(read.remote())


ray.init(num_cpus=2, include_dashboard=False)
print(ray.get(A.options(runtime_env={"env_vars": {"COLOUR": "blue"}}).remote().both.remote()))
