# Upload modes: which calls copy, and which delete the local directory.
import os

from conform import show
from ray import train
from ray.train import CheckpointUploadMode as Mode
from training import checkpoint, fit, listing, note, notes, start


def loop():
    for name, options in {
        "sync": {"checkpoint_upload_mode": Mode.SYNC},
        "sync_delete": {"delete_local_checkpoint_after_upload": True},
        "async": {"checkpoint_upload_mode": Mode.ASYNC},
        "async_keep": {
            "checkpoint_upload_mode": Mode.ASYNC,
            "delete_local_checkpoint_after_upload": False,
        },
    }.items():
        saved = checkpoint(file=name)
        train.report({"name": name}, checkpoint=saved, checkpoint_dir_name=name, **options)
        if "async" in name:
            # This call waits until the report was uploaded and registered.
            reported = train.get_all_reported_checkpoints()
            note(name, [one.checkpoint.path.rpartition("/")[2] for one in reported])
        note(name, f"local {os.path.exists(saved.path)}")


start()
result = fit(loop, 1)
notes()
show("folder", lambda: listing("run"))
show("last", lambda: result.metrics)
