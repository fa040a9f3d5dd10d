# JobConfig sets the namespace, metadata and the default lifetime of actors.
import ray
from conform import show
from ray.job_config import JobConfig

config = JobConfig(ray_namespace="from config")
show("metadata", lambda: config.set_metadata("k", "v"))
show("init", lambda: ray.init(num_cpus=1, include_dashboard=False, job_config=config) and "ok")
show("namespace", lambda: ray.get_runtime_context().namespace)
ray.shutdown()
show("bad lifetime", lambda: JobConfig(default_actor_lifetime="forever") and "accepted")
