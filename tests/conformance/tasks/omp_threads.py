# OMP_NUM_THREADS follows num_cpus.
import os
import ray

ray.init(num_cpus=2, include_dashboard=False)
read = ray.remote(lambda: os.environ.get("OMP_NUM_THREADS"))
print(
    ray.get(
        [
            read.remote(),
            read.options(num_cpus=2).remote(),
            read.options(num_cpus=0).remote(),
            read.options(num_cpus=0.5).remote(),
        ]
    )
)
