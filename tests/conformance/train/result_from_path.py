# Result.from_path reads a run's folder again, also when the run failed.
import os
import pathlib

from conform import show
from ray import train
from ray.train import CheckpointConfig, Result
from training import STORAGE, checkpoint, content, show_failure, start, fit


def loop():
    for step, loss in enumerate((1, 3, 2)):
        train.report({"loss": loss}, checkpoint=checkpoint(f=step), checkpoint_dir_name=f"s{step}")
    train.report({"loss": 0})
    train.get_all_reported_checkpoints()
    raise RuntimeError("late")


start()
keep = CheckpointConfig(num_to_keep=1, checkpoint_score_attribute="loss")
show_failure("fit", lambda: fit(loop, 1, run={"checkpoint_config": keep}))
result = Result.from_path(str(STORAGE / "run"))
show("metrics", lambda: result.metrics)
show("checkpoint", lambda: content(result.checkpoint))
show("path", lambda: result.path == str(STORAGE / "run"))
show("best", lambda: [metrics for saved, metrics in result.best_checkpoints])
show("get_best", lambda: result.get_best_checkpoint("loss", "max").path.rpartition("/")[2])
show("error", lambda: result.error)
show("value", lambda: result.return_value)
show("Path", lambda: Result.from_path(STORAGE / "run").metrics)
show("slash", lambda: Result.from_path(f"{STORAGE}/run/").metrics)
show("nothing there", lambda: Result.from_path("/nowhere/run"), "/nowhere/run")
os.makedirs("empty")
show("no run", lambda: Result.from_path(os.path.abspath("empty")))
pathlib.Path("empty/checkpoint_manager_snapshot.json").write_text("{")
show("unreadable", lambda: Result.from_path(os.path.abspath("empty")))
