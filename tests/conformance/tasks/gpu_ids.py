# Tasks see the GPUs they hold as GPU ids and as CUDA_VISIBLE_DEVICES.
import os
import ray


@ray.remote
def f():
    return len(ray.get_gpu_ids()), len(
        [x for x in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if x]
    )


ray.init(num_cpus=1, num_gpus=2, include_dashboard=False)
print(ray.get_gpu_ids())
print(
    ray.get(f.remote()),
    ray.get(f.options(num_gpus=1).remote()),
    ray.get(f.options(num_gpus=2).remote()),
    ray.get(f.options(num_gpus=0.5).remote()),
)
