# Each session of a driver has a job id.
import ray

ray.init(num_cpus=1, include_dashboard=False)
print(ray.get_runtime_context().get_job_id())
