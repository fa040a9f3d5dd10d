# Without a name and a path the run is in ~/ray_results, under a name with the time.
import os
import re

os.environ["HOME"] = os.getcwd()
from conform import show
from training import checkpoint, start
from ray import train
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer


def masked(text):
    return re.sub(r"\d+-\d+-\d+_\d+-\d+-\d+(\.\d{6})?", "TIME", text)


def loop():
    train.report({"a": 1}, checkpoint=checkpoint(file="x"))


start()
result = DataParallelTrainer(loop).fit()
show("path", lambda: masked(os.path.relpath(result.path, os.getcwd())))
show("folder", lambda: sorted(map(masked, os.listdir(result.path))))
show("checkpoint", lambda: masked(os.path.relpath(result.checkpoint.path, result.path)))
show("default workers", lambda: DataParallelTrainer(loop).scaling_config.num_workers)
