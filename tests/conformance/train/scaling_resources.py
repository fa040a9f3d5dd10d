# resources_per_worker, use_gpu and accelerator_type together say what a worker gets.
from conform import show
from ray.train import ScalingConfig


def per_worker(**options):
    config = ScalingConfig(num_workers=2, **options)
    return (
        config.num_cpus_per_worker,
        config.num_gpus_per_worker,
        config.additional_resources_per_worker,
        sorted(config.total_resources.items()),
    )


show("cpus", lambda: per_worker(resources_per_worker={"CPU": 4}))
show("none", lambda: per_worker(resources_per_worker={}))
show("zeros", lambda: per_worker(resources_per_worker={"CPU": 0, "x": 0}))
show("fraction", lambda: per_worker(resources_per_worker={"CPU": 0.5}))
show("custom", lambda: per_worker(resources_per_worker={"x": 2}))
show("gpu", lambda: per_worker(use_gpu=True))
show("gpu and cpus", lambda: per_worker(use_gpu=True, resources_per_worker={"CPU": 2}))
show("two gpus", lambda: per_worker(use_gpu=True, resources_per_worker={"GPU": 2}))
show("half a gpu", lambda: per_worker(use_gpu=True, resources_per_worker={"GPU": 0.5}))
show("no gpu", lambda: per_worker(use_gpu=True, resources_per_worker={"GPU": 0}))
show("accelerator", lambda: per_worker(use_gpu=True, accelerator_type="H100"))
show("accelerator without gpu", lambda: per_worker(accelerator_type="H100"))
show("gpu without use_gpu", lambda: per_worker(resources_per_worker={"GPU": 1}), "use_gpu", "GPU")
show("gpu 0 without use_gpu", lambda: per_worker(resources_per_worker={"GPU": 0}))
