# The file checkpoint_manager_snapshot.json in the run's folder.
import json

from conform import show
from ray import train
from ray.train import CheckpointConfig
from training import STORAGE, checkpoint, fit, start


def loop():
    for step in range(3):
        saved = checkpoint(f=step) if step != 1 else None
        train.report({"step": step}, checkpoint=saved, checkpoint_dir_name=f"s{step}")


start()
fit(loop, 2, run={"checkpoint_config": CheckpointConfig(num_to_keep=1)})
snapshot = json.loads((STORAGE / "run" / "checkpoint_manager_snapshot.json").read_text())
for key in sorted(snapshot):
    if key != "ray_version":
        show(key, lambda: snapshot[key])
show("version", lambda: type(snapshot["ray_version"]).__name__)
