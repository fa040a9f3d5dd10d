# Tasks and actors inherit the runtime_env of their parents and may add to it.
import os
import ray
from conform import show


@ray.remote
class Reader:
    def read(self, *names):
        return [os.environ.get(name) for name in names]

    def env(self):
        return ray.get_runtime_context().runtime_env.get("env_vars")


@ray.remote
def of_an_actor(**options):
    reader = (Reader.options(**options) if options else Reader).remote()
    return ray.get([reader.read.remote("A", "B", "C"), reader.env.remote()])


ray.init(num_cpus=4, include_dashboard=False, runtime_env={"env_vars": {"A": "job", "B": "job"}})
show("from the job", lambda: ray.get(of_an_actor.remote()))
show(
    "from a task",
    lambda: ray.get(of_an_actor.options(runtime_env={"env_vars": {"B": "task"}}).remote()),
)
show(
    "its own",
    lambda: ray.get(
        of_an_actor.options(runtime_env={"env_vars": {"B": "task"}}).remote(
            runtime_env={"env_vars": {"C": "actor"}}
        )
    ),
)
show("empty", lambda: ray.get(of_an_actor.options(runtime_env={}).remote()))
