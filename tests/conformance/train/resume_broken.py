# A run whose folder has a broken snapshot, or whose checkpoint vanished, is refused.
import shutil

import ray
from conform import show
from ray import train
from training import STORAGE, checkpoint, fit, start


def loop():
    train.report({"a": 1}, checkpoint=checkpoint(f="x"), checkpoint_dir_name="here")


start()
fit(loop, 1)
shutil.rmtree(STORAGE / "run" / "here")
show("vanished", lambda: fit(loop, 1), "CheckpointManagerInitializationError", "here")
(STORAGE / "run" / "checkpoint_manager_snapshot.json").write_text("{")
show("unreadable", lambda: fit(loop, 1), "CheckpointManagerInitializationError")
