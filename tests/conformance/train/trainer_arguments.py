# Wrong arguments of a trainer, and those that were removed.
import ray
from conform import show
from ray.train import Checkpoint, DataConfig, RunConfig, ScalingConfig
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer


def f():
    pass


show("nothing", DataParallelTrainer, "train_loop_per_worker")
show("positional", lambda: DataParallelTrainer(f, {"a": 1}), "positional")
show("run", lambda: DataParallelTrainer(f, run_config={"name": "x"}), "RunConfig")
show("metadata", lambda: DataParallelTrainer(f, metadata={"a": 1}), "metadata")
show("metadata empty", lambda: type(DataParallelTrainer(f, metadata={})).__name__)
show(
    "resume",
    lambda: DataParallelTrainer(f, resume_from_checkpoint=Checkpoint("/x")),
    "resume_from_checkpoint",
)
show("restore", lambda: DataParallelTrainer.restore("/x"), "restore")
show("can_restore", lambda: DataParallelTrainer.can_restore("/x"), "can_restore")
show("unknown", lambda: DataParallelTrainer(f, workers=2), "workers")
show(
    "a dict of run_config's",
    lambda: DataParallelTrainer(f, run_config=RunConfig(), scaling_config=None) is not None,
)
show("not a function", lambda: type(DataParallelTrainer(3)).__name__)
show("started", ray.is_initialized)
