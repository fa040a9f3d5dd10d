# Job ids of one driver's sessions.
import ray

ray.init(num_cpus=1, include_dashboard=False)
print(ray.get_runtime_context().get_job_id())
