# The scheduling strategies "SPREAD" and "DEFAULT" run all tasks.
import ray

ray.init(num_cpus=2, include_dashboard=False)
f = ray.remote(lambda x: x)
print(
    ray.get(
        [f.options(scheduling_strategy=kind).remote(kind) for kind in ("SPREAD", "DEFAULT", None)]
    )
)
