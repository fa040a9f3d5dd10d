# The names of ray.train and of its modules.
import importlib

import ray.train
from conform import show

show("all", lambda: sorted(ray.train.__all__))
show(
    "modules",
    lambda: {
        getattr(ray.train, name).__module__
        for name in ray.train.__all__
        if name.isidentifier() and hasattr(getattr(ray.train, name), "__module__")
    },
)
show("key", lambda: ray.train.TRAIN_DATASET_KEY)
show("unknown", lambda: ray.train.nothing_such, "nothing_such")
for name in "v2.api.data_parallel_trainer.DataParallelTrainer data_parallel_trainer.DataParallelTrainer backend.Backend backend.BackendConfig collective.barrier".split():
    module, _, last = name.rpartition(".")
    show(name, lambda: getattr(importlib.import_module("ray.train." + module), last).__name__)
old = importlib.import_module("ray.train.data_parallel_trainer").DataParallelTrainer
show("old", lambda: old(print))
show("trainer", lambda: importlib.import_module("ray.train.trainer").__name__)
show("modes", lambda: [mode.name for mode in ray.train.CheckpointUploadMode])
show("consistency", lambda: [mode.name for mode in ray.train.CheckpointConsistencyMode])
show("status", lambda: [status.name for status in ray.train.ReportedCheckpointStatus])
