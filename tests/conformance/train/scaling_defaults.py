# ScalingConfig's defaults, its derived properties and its equality.
from conform import show
from ray.train import ScalingConfig

plain = ScalingConfig()
show("repr", lambda: [name in repr(plain) for name in ("num_workers=1", "use_gpu=False", "PACK")])
NAMES = (
    "elasticity_enabled min_workers max_workers total_resources num_cpus_per_worker "
    "num_gpus_per_worker additional_resources_per_worker num_workers use_gpu placement_strategy"
).split()
for config in (
    plain,
    ScalingConfig(num_workers=3, use_gpu=True),
    ScalingConfig(num_workers=(2, 5)),
):
    for name in NAMES:
        show(name, lambda: getattr(config, name))
show("equal", lambda: ScalingConfig() == ScalingConfig())
show("unequal", lambda: ScalingConfig() == ScalingConfig(num_workers=2))
