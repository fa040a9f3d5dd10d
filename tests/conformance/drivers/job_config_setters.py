# JobConfig has setters and reads JSON.
import ray
from conform import show
from ray.job_config import JobConfig

config = JobConfig()
config.set_ray_namespace("later")
show("namespace", lambda: config.ray_namespace)
show("runtime env", lambda: (config.set_runtime_env({"env_vars": {"A": "b"}}), config.runtime_env))
show("lifetime", lambda: config.set_default_actor_lifetime("detached"))
show("bad lifetime", lambda: config.set_default_actor_lifetime("forever"))
read = JobConfig.from_json(
    {"ray_namespace": "n", "metadata": {"k": "v"}, "runtime_env": {"env_vars": {"A": "b"}}}
)
show("from_json", lambda: (read.ray_namespace, read.metadata, read.runtime_env))


@ray.remote
class A:
    def m(self):
        return 1


with ray.init(num_cpus=1, job_config=config):
    show("init", lambda: ray.get_runtime_context().namespace)
    ray.get(A.options(name="a").remote().m.remote())
    show("its actor is detached", lambda: ray.get(ray.get_actor("a").m.remote()))
