# Wrong values of a ScalingConfig.
from conform import show
from ray.train import ScalingConfig

show("no workers", lambda: ScalingConfig(num_workers=0).num_workers)
show("negative", lambda: ScalingConfig(num_workers=-1), "num_workers")
show("a fraction", lambda: ScalingConfig(num_workers=1.5), "num_workers")
show("a string", lambda: ScalingConfig(num_workers="2"), "num_workers")
show("None", lambda: ScalingConfig(num_workers=None), "num_workers")
show("a list", lambda: ScalingConfig(num_workers=[1, 2]).num_workers)
show("three", lambda: ScalingConfig(num_workers=(1, 2, 3)), "num_workers")
show("min above max", lambda: ScalingConfig(num_workers=(3, 2)), "num_workers")
show("min is max", lambda: ScalingConfig(num_workers=(2, 2)).elasticity_enabled)
show("trainer_resources", lambda: ScalingConfig(trainer_resources={"CPU": 1}), "trainer_resources")
show("trainer_resources {}", lambda: ScalingConfig(trainer_resources={}), "trainer_resources")
show("unknown", lambda: ScalingConfig(workers=2), "workers")
show("label_selector", lambda: ScalingConfig(label_selector={"a": "b"}).label_selector)
show(
    "selectors", lambda: ScalingConfig(num_workers=2, label_selector=[{"a": "b"}]), "label_selector"
)
show(
    "elastic selectors",
    lambda: ScalingConfig(num_workers=(1, 2), label_selector=[{}, {}]).max_workers,
)
show("tpu and gpu", lambda: ScalingConfig(use_tpu=True, use_gpu=True), "use_gpu", "use_tpu")
