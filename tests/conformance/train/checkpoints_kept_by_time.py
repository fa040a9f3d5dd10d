# num_to_keep without an attribute keeps the newest.
from conform import show
from ray import train
from ray.train import CheckpointConfig
from training import checkpoint, fit, listing, note, notes, start


def loop():
    for step in range(4):
        train.report({"step": step}, checkpoint=checkpoint(f=step), checkpoint_dir_name=f"s{step}")
        train.get_all_reported_checkpoints()
        note("folder", listing("run"))


start()
result = fit(loop, 1, run={"checkpoint_config": CheckpointConfig(num_to_keep=2)})
notes()
show("folder", lambda: listing("run"))
show("best", lambda: [metrics for saved, metrics in result.best_checkpoints])
show("checkpoint", lambda: result.metrics)
