# checkpoint_upload_fn uploads by itself and returns the checkpoint in the run's folder.
import os
import shutil

from conform import show
from ray import train
from ray.train import Checkpoint
from training import checkpoint, content, fit, listing, note, notes, start


def loop():
    folder = train.get_context().get_storage().experiment_fs_path

    def upload(saved, name):
        note("upload", f"{type(saved).__name__} {name}")
        shutil.copytree(saved.path, os.path.join(folder, "own", name))
        return Checkpoint(os.path.join(folder, "own", name))

    saved = checkpoint(file="x")
    train.report(
        {"a": 1}, checkpoint=saved, checkpoint_dir_name="name", checkpoint_upload_fn=upload
    )
    note("local", os.path.exists(saved.path))
    note("path", os.path.relpath(train.get_checkpoint().path, folder))
    for label, wrong in {
        "outside": lambda saved, name: saved,
        "none": lambda saved, name: None,
        "raises": lambda saved, name: 1 / 0,
    }.items():
        try:
            train.report({}, checkpoint=checkpoint(f="x"), checkpoint_upload_fn=wrong)
        except Exception as error:
            note(label, type(error).__name__)


start()
result = fit(loop, 1)
notes()
show("folder", lambda: listing("run"))
show("checkpoint", lambda: content(result.checkpoint))
