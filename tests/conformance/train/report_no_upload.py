# NO_UPLOAD: the checkpoint has to be inside the run's folder already.
import os
import pathlib

from conform import show
from ray import train
from ray.train import Checkpoint, CheckpointUploadMode
from training import checkpoint, content, fit, listing, note, notes, start


def loop():
    folder = train.get_context().get_storage().experiment_fs_path
    rank = train.get_context().get_world_rank()
    own = pathlib.Path(folder, "mine")
    own.mkdir(exist_ok=True)
    (own / f"rank{rank}").write_text("x")
    mode = CheckpointUploadMode.NO_UPLOAD
    train.report(
        {"a": 1},
        checkpoint=Checkpoint(str(own)),
        checkpoint_upload_mode=mode,
        checkpoint_dir_name="unused",
    )
    note(rank, train.get_checkpoint().path == str(own))
    if rank == 0:
        try:
            train.report({}, checkpoint=checkpoint(f="x"), checkpoint_upload_mode=mode)
        except Exception as error:
            note(rank, f"outside {type(error).__name__}")
    else:
        train.report({})


start()
result = fit(loop)
notes()
show("folder", lambda: listing("run"))
show("checkpoint", lambda: content(result.checkpoint))
