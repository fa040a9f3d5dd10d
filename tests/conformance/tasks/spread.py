# scheduling_strategy "SPREAD" and "DEFAULT" run everywhere they should.
import ray

ray.init(num_cpus=2, include_dashboard=False)
f = ray.remote(lambda x: x)
print(
    ray.get(
        [f.options(scheduling_strategy=kind).remote(kind) for kind in ("SPREAD", "DEFAULT", None)]
    )
)
